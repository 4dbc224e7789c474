/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the JSON values of a saved snapshot, with checks: for snapshot/load*.c only.
 *
 * The first error is kept in loader.err and loader.diag; after it all functions do nothing and return
 * 0, NULL or false, so callers may check once at the end.
 */
#ifndef PYPROF_SNAPSHOT_LOAD_JSON_H
#define PYPROF_SNAPSHOT_LOAD_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "snapshot/snapshot.h"

/* Elements as they come, before their number is known. */
struct list {
	void *data;
	size_t n, cap, size;
};

struct loader {
	const char *name;
	const char *data, *p, *end;
	struct snapshot *s;
	struct list targets, threads, funcs, nodes, columns[COLUMNS], coros, gil_pairs;
	unsigned int sections; /* those that were there: bits, by their number */
	const char *section;   /* the one at hand, or NULL */
	size_t element;
	int err; /* the first error; what follows does nothing */
	struct diag *diag;
};

/* Report the first error: what is wrong at the current byte (and element), or out of memory. Returns
 * loader.err, a negative errno. */
__attribute__((format(printf, 2, 3))) int loader_damaged(struct loader *l, const char *fmt, ...);
int loader_no_memory(struct loader *l);

/* A new, zeroed element at the end of a list; NULL after an error. */
void *loader_append(struct loader *l, struct list *list);

/* The text: skip blanks; the next character that is not blank (0 at the end); consume it if it is c. */
void loader_skip_blanks(struct loader *l);
char loader_peek(struct loader *l);
bool loader_accept(struct loader *l, char c);
/* The JSON value at the current byte: a new reference, or NULL after an error. */
json_t *loader_value(struct loader *l);

/* A required member of an object; a borrowed reference, or NULL after an error. */
json_t *loader_member(struct loader *l, const json_t *object, const char *key);

/* Check and convert a value; key is for the error message. v may be NULL: 0, false or NULL. */
uint64_t loader_unsigned(struct loader *l, const json_t *v, const char *key, uint64_t max);
bool loader_bool(struct loader *l, const json_t *v, const char *key);
/* The string belongs to the snapshot; NULL also for JSON's null. */
const char *loader_string(struct loader *l, const json_t *v, const char *key);

/* Required members. get_index: null is SNAPSHOT_NONE; get_known: null is SNAPSHOT_MIN_UNKNOWN. */
uint64_t loader_get_u64(struct loader *l, const json_t *object, const char *key);
uint32_t loader_get_u32(struct loader *l, const json_t *object, const char *key);
uint32_t loader_get_index(struct loader *l, const json_t *object, const char *key);
bool loader_get_bool(struct loader *l, const json_t *object, const char *key);
const char *loader_get_string(struct loader *l, const json_t *object, const char *key);
uint64_t loader_get_known(struct loader *l, const json_t *object, const char *key);
/* {"cpu": ns, "wall": ns}; null leaves ns unchanged. In get_extreme each clock may be null, too. */
void loader_get_clocks(struct loader *l, const json_t *object, const char *key,
		       uint64_t ns[SNAPSHOT_CLOCKS]);
void loader_get_extreme(struct loader *l, const json_t *object, const char *key,
			uint64_t ns[SNAPSHOT_CLOCKS]);
/* Optional members, which files of other versions may not have: 0 or NULL then. */
uint64_t loader_get_count(struct loader *l, const json_t *object, const char *key);
const char *loader_get_remark(struct loader *l, const json_t *object, const char *key);

#endif
