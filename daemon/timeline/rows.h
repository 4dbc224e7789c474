/* SPDX-License-Identifier: BSD-2-Clause */
/* What the formats of timelines have in common: how each writes one thing. For timeline/ only. */
#ifndef PYPROF_TIMELINE_ROWS_H
#define PYPROF_TIMELINE_ROWS_H

#include <jansson.h>
#include <stdio.h>

#include "stack/watch.h"

struct timeline_names {
	const char *file, *name; /* name: the qualified one where there is one */
	int32_t line;
};

/* One thing that happened. Texts are what `describe` made; NULL: there is none. */
struct timeline_row {
	enum watch_kind kind;
	uint32_t pid, tid;
	uint64_t ts, cpu; /* since the window's start; of the thread */
	uint64_t count;	  /* DROPPED */
	const char *func, *caller;
};

struct timeline_end {
	uint64_t ts;
	json_t *provenance; /* borrowed */
};

/* Rows are made at `at`, which has room for TIMELINE_ROW_MAX bytes besides the texts; they return
 * where they end. */
#define TIMELINE_ROW_MAX 320

struct timeline_format {
	const char *name, *extension;
	/* A function's part of its rows, and of its callees'. */
	int (*describe)(FILE *out, const struct timeline_names *n);
	int (*describe_caller)(FILE *out, const struct timeline_names *n);
	void (*head)(FILE *out);
	char *(*row)(char *at, const struct timeline_row *r, bool first);
	/* A process's or thread's name (tid 0: a process's). May be NULL. */
	int (*name_of)(FILE *out, uint32_t pid, uint32_t tid, const char *text, bool first);
	int (*tail)(FILE *out, const struct timeline_end *end, bool first);
};

extern const struct timeline_format timeline_chrome, timeline_csv;

/* Pieces of a row. */
char *timeline_put(char *at, const char *text);
char *timeline_put_number(char *at, uint64_t n);

#endif
