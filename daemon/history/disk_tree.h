/* SPDX-License-Identifier: BSD-2-Clause */
/* The files in a directory of intervals (private to history/): see disk.h. */
#ifndef PYPROF_HISTORY_DISK_TREE_H
#define PYPROF_HISTORY_DISK_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_PREFIX_TEXT 21 /* "2026-11-26T14/143010", NUL-terminated */
#define DISK_HOUR_TEXT	 14 /* "2026-11-26T14", NUL-terminated */
#define DISK_NAME_TEXT	 48
#define DISK_LEFT_PREFIX "."
#define DISK_FILES_MAX	 (1u << 20)

struct disk_file {
	/* "2026-11-26T14/143010-1f2e3d4c.gz"; merged, of 300 s: "…T14/143500-1f2e3d4c-0300.gz" */
	char name[DISK_NAME_TEXT];
	uint64_t size;
	bool replaced; /* while scanning */
};

/* All zero: empty */
struct disk_tree {
	struct disk_file *v; /* sorted by name, which is by time */
	size_t n, room;
	struct disk_file *left; /* incomplete ones, and those that a merged one replaces */
	size_t nleft, left_room;
};

/* Lists the files of a directory, a descriptor. Returns 0 or a negative errno. */
int disk_tree_scan(int dir, struct disk_tree *ret);
void disk_tree_deinit(struct disk_tree *t);

/* Inserts a copy of f. Returns 0, -ENOMEM or -ENFILE. */
int disk_tree_add(struct disk_tree *t, const struct disk_file *f);

/* The time in a file's name, in seconds since 1970. */
int64_t disk_file_time(const struct disk_file *f);
/* Its part before the unique number. */
void disk_file_prefix(int64_t unix_s, char out[DISK_PREFIX_TEXT]);
/* Of a merged file: it has the intervals of so many seconds before its time; 0: of a cut. */
int64_t disk_file_span(const struct disk_file *f);

/* The position of the first file whose name is not less. */
size_t disk_tree_find(const struct disk_tree *t, const char *name);
void disk_tree_remove(struct disk_tree *t, size_t at);

/* *ret is malloc'ed. Returns 0 or a negative errno. */
int disk_file_read(int dir, const char *name, char **ret, size_t *ret_size);

/*
 * Merged files take the place of others while no reader has the directory's lock. *ret: a descriptor,
 * or -1 if there is no lock, because nothing was ever merged. exclusive: creates it, and does not wait:
 * -EAGAIN. Otherwise waits for some milliseconds.
 */
int disk_lock(int dir, bool exclusive, int *ret);

#endif
