/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of a response (format "rows"): functions, threads, processes and callers. The response
 * may have any content. Pure.
 */
#ifndef PYPROFCTL_TOP_TABLE_H
#define PYPROFCTL_TOP_TABLE_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/column.h"
#include "snapshot/snapshot.h"

#define TOP_WAITS (COLUMN_WAITS_END - COLUMN_WAITS_FIRST)

enum top_view { TOP_FUNCTIONS, TOP_THREADS, TOP_PROCESSES, TOP_CALLERS, TOP_VIEWS };

struct top_entry {
	char *key;	   /* owned: file:line(name), pid:tid, or pid */
	char *name;	   /* owned: text for users, without directories */
	char *full;	   /* owned: the same in full; NULL: equal to name */
	char *file, *func; /* owned, of a function; NULL: not a function */
	int32_t line;
	pid_t pid, tid; /* of a thread or a process; 0: none */
	uint64_t calls, primitive, tot[SNAPSHOT_CLOCKS], cum[SNAPSHOT_CLOCKS]; /* ns */
	uint64_t waits[TOP_WAITS];					       /* ns, own */
	/* Of a process in an interval, else NULL; `name` is then the function with the most CPU time. */
	char *service; /* owned */
	uint64_t samples;
};

/* All zero: empty */
struct top_table {
	struct top_entry *entries; /* sorted by key, each key once */
	size_t n;
};

void top_table_deinit(struct top_table *t);

/* Read the response's rows of this view. *ret is owned by the caller. 0 or -ENOMEM. */
int top_table_read(const json_t *response, enum top_view view, struct top_table *ret);

/* The entry with this key; NULL: none. */
const struct top_entry *top_table_find(const struct top_table *t, const char *key);

#endif
