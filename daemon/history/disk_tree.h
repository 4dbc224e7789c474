/* SPDX-License-Identifier: BSD-2-Clause */
/* The files in a directory of intervals (private to history/): see disk.h. */
#ifndef PYPROF_HISTORY_DISK_TREE_H
#define PYPROF_HISTORY_DISK_TREE_H

#include <stddef.h>
#include <stdint.h>

#define DISK_HOUR_TEXT	 14 /* "2026-11-26T14", NUL-terminated */
#define DISK_NAME_TEXT	 48
#define DISK_LEFT_PREFIX "."
#define DISK_FILES_MAX	 (1u << 20)

struct disk_file {
	char name[DISK_NAME_TEXT]; /* "2026-11-26T14/143010-1f2e3d4c.gz" */
	uint64_t size;
};

/* All zero: empty */
struct disk_tree {
	struct disk_file *v; /* sorted by name, which is by time */
	size_t n, room;
	struct disk_file *left; /* incomplete ones */
	size_t nleft, left_room;
};

/* Lists the files of a directory, a descriptor. Returns 0 or a negative errno. */
int disk_tree_scan(int dir, struct disk_tree *ret);
void disk_tree_deinit(struct disk_tree *t);

/* Inserts a copy of f. Returns 0, -ENOMEM or -ENFILE. */
int disk_tree_add(struct disk_tree *t, const struct disk_file *f);
void disk_tree_remove_first(struct disk_tree *t);

/* The time in a file's name, in seconds since 1970. */
int64_t disk_file_time(const struct disk_file *f);

#endif
