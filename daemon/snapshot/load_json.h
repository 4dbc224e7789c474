/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and checks the JSON values of a saved snapshot, for snapshot/load*.c only.
 *
 * The first error is stored in loader.err and loader.diag. After it, all functions do nothing and
 * return 0, NULL or false, so callers may check once at the end.
 */
#ifndef PYPROF_SNAPSHOT_LOAD_JSON_H
#define PYPROF_SNAPSHOT_LOAD_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "snapshot/snapshot.h"

/* A growing array, for elements whose number is not known in advance. */
struct list {
	void *data;
	size_t n, cap, size;
};

struct loader {
	const char *name;
	const char *data, *p, *end;
	struct snapshot *s;
	struct list targets, threads, funcs, nodes, columns[COLUMNS], coros, gil_pairs, waits;
	struct list wholes;    /* up to the last node that has them */
	unsigned int sections; /* bit mask of the sections read so far */
	const char *section;   /* the current section, or NULL */
	size_t element;
	int err; /* the first error; later calls do nothing */
	struct diag *diag;
};

/*
 * Reports the first error with its position (byte and element), or out of memory. Returns
 * loader.err, a negative errno.
 */
__attribute__((format(printf, 2, 3))) int loader_damaged(struct loader *l, const char *fmt, ...);
int loader_no_memory(struct loader *l);

/* Appends a zeroed element to a list and returns it; NULL after an error. */
void *loader_append(struct loader *l, struct list *list);

/*
 * Skip white space; return the next character that is not white space (0 at the end); consume it if
 * it is c.
 */
void loader_skip_blanks(struct loader *l);
char loader_peek(struct loader *l);
bool loader_accept(struct loader *l, char c);
/*
 * Parses the JSON value at the current position. Returns a new reference, or NULL after an error.
 */
json_t *loader_value(struct loader *l);

/* Returns a required member of an object as a borrowed reference, or NULL after an error. */
json_t *loader_member(struct loader *l, const json_t *object, const char *key);

/*
 * Check and convert a value; `key` is used in error messages. v may be NULL (after an error):
 * returns 0, false or NULL.
 */
uint64_t loader_unsigned(struct loader *l, const json_t *v, const char *key, uint64_t max);
bool loader_bool(struct loader *l, const json_t *v, const char *key);
/* The snapshot owns the string. Also returns NULL for JSON's null. */
const char *loader_string(struct loader *l, const json_t *v, const char *key);

/*
 * Read required members. get_index maps null to SNAPSHOT_NONE, get_known to SNAPSHOT_MIN_UNKNOWN.
 */
uint64_t loader_get_u64(struct loader *l, const json_t *object, const char *key);
uint32_t loader_get_u32(struct loader *l, const json_t *object, const char *key);
uint32_t loader_get_index(struct loader *l, const json_t *object, const char *key);
bool loader_get_bool(struct loader *l, const json_t *object, const char *key);
const char *loader_get_string(struct loader *l, const json_t *object, const char *key);
uint64_t loader_get_known(struct loader *l, const json_t *object, const char *key);
/*
 * Read {"cpu": ns, "wall": ns}; null leaves ns unchanged. get_extreme also accepts null per clock.
 */
void loader_get_clocks(struct loader *l, const json_t *object, const char *key,
		       uint64_t ns[SNAPSHOT_CLOCKS]);
void loader_get_extreme(struct loader *l, const json_t *object, const char *key,
			uint64_t ns[SNAPSHOT_CLOCKS]);
/* Read optional members, which files of other versions may lack: 0 or NULL then. */
uint64_t loader_get_count(struct loader *l, const json_t *object, const char *key);
const char *loader_get_remark(struct loader *l, const json_t *object, const char *key);

#endif
