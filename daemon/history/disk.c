// SPDX-License-Identifier: BSD-2-Clause
/* Intervals on disk, written by the daemon: see disk.h. */
#include "history/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safepath.h"
#include "history/disk_tree.h"

#define BLOCK 4096u

struct disk {
	char *path;
	int dir;
	struct disk_tree tree; /* oldest first */
	uint64_t bytes, max_bytes, removed, failed, merged;
	int64_t merged_until_s; /* spans up to this time are done, or cannot be merged */
};

/* At least what the file takes on disk. */
static uint64_t blocks_of(uint64_t size)
{
	return (size + BLOCK - 1) / BLOCK * BLOCK + BLOCK;
}

void disk_free(struct disk *d)
{
	if (!d)
		return;
	disk_tree_deinit(&d->tree);
	closep(&d->dir);
	free(d->path);
	free(d);
}

/* ---- opening ---- */

static int check_private(const char *path, int dir, struct diag *diag)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return diag_errno(diag, errno, "cannot use the directory '%.200s'", path);
	if (st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return diag_set(diag, -EPERM, PYP_EXIT_FAILURE,
			"give the daemon a directory of its own, with mode 0700",
			"other users can write to the directory '%.200s'", path);
}

static int open_dir(const char *path, int *ret, struct diag *diag)
{
	_cleanup_close_ int parent = -1;
	_cleanup_free_ char *name = NULL;
	int r = safepath_open_parent(path, &parent, &name, diag);

	if (r == -EPERM)
		return r;
	if (r == 0 && mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0) {
		*ret = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = *ret < 0 ? -errno : 0;
	}
	return r < 0 ? diag_errno(diag, -r, "cannot use the directory '%.200s'", path) : 0;
}

/* What another run of the daemon had not completed, or had merged. */
static void remove_leftovers(const struct disk *d)
{
	for (size_t i = 0; i < d->tree.nleft; i++)
		(void)unlinkat(d->dir, d->tree.left[i].name, 0);
}

int disk_open(const char *path, uint64_t max_bytes, struct disk **ret, struct diag *diag)
{
	_cleanup_(disk_freep) struct disk *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return diag_errno(diag, ENOMEM, "cannot keep intervals");
	d->dir = -1;
	d->max_bytes = max_bytes;
	d->path = strdup(path);
	r = d->path ? open_dir(path, &d->dir, diag)
		    : diag_errno(diag, ENOMEM, "cannot keep intervals");
	if (r == 0)
		r = check_private(path, d->dir, diag);
	if (r == 0 && flock(d->dir, LOCK_EX | LOCK_NB) < 0)
		r = diag_set(diag, -EBUSY, PYP_EXIT_BUSY, "give each daemon a directory of its own",
			     "another daemon keeps intervals in '%.200s'", path);
	if (r < 0)
		return r;
	r = disk_tree_scan(d->dir, &d->tree);
	if (r < 0)
		return diag_errno(diag, -r, "cannot read the directory '%.200s'", path);
	remove_leftovers(d);
	for (size_t i = 0; i < d->tree.n; i++)
		d->bytes += blocks_of(d->tree.v[i].size);
	*ret = TAKE_PTR(d);
	return 0;
}

/* ---- writing ---- */

/* Returns whether it is gone. */
static bool remove_file(struct disk *d, size_t at)
{
	const struct disk_file f = d->tree.v[at];
	const bool gone = unlinkat(d->dir, f.name, 0) == 0 || errno == ENOENT;
	char hour[DISK_HOUR_TEXT];
	size_t next;

	d->bytes -= blocks_of(f.size);
	snprintf(hour, sizeof(hour), "%.*s", DISK_HOUR_TEXT - 1, f.name);
	disk_tree_remove(&d->tree, at);
	next = disk_tree_find(&d->tree, hour);
	if (next == d->tree.n || strncmp(d->tree.v[next].name, hour, DISK_HOUR_TEXT - 1) != 0)
		(void)unlinkat(d->dir, hour, AT_REMOVEDIR);
	return gone;
}

static void remove_oldest(struct disk *d)
{
	d->removed += remove_file(d, 0);
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

/* dir: of the hour; temporary and name: in it. */
static int write_file(int dir, const char *name, const void *data, size_t size)
{
	char temporary[DISK_NAME_TEXT + 8];
	_cleanup_close_ int fd = -1;
	int r;

	snprintf(temporary, sizeof(temporary), DISK_LEFT_PREFIX "%s", name);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, data, size);
	if (r == 0 && renameat2(dir, temporary, dir, name, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, temporary, 0);
	else
		(void)fsync(dir); /* the name; without it, the file is found as a leftover */
	return r;
}

static int open_hour(const struct disk *d, const char *hour, int *ret)
{
	if (mkdirat(d->dir, hour, 0700) < 0 && errno != EEXIST)
		return -errno;
	*ret = openat(d->dir, hour, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 ? -errno : 0;
}

/* span_s: of a merged file; 0: of a cut */
static int name_of(int64_t unix_s, uint32_t span_s, struct disk_file *f)
{
	char prefix[DISK_PREFIX_TEXT], span[16] = "";
	uint32_t unique;

	disk_file_prefix(unix_s, prefix);
	if (getrandom(&unique, sizeof(unique), 0) != sizeof(unique) || !prefix[0])
		return -EINVAL;
	if (span_s)
		snprintf(span, sizeof(span), "-%04" PRIu32, span_s);
	snprintf(f->name, sizeof(f->name), "%s-%08" PRIx32 "%s.gz", prefix, unique, span);
	return 0;
}

static int write_new(struct disk *d, int64_t unix_s, uint32_t span_s, const void *data, size_t size)
{
	_cleanup_close_ int dir = -1;
	struct disk_file f = {.size = size};
	char hour[DISK_HOUR_TEXT];
	int r = name_of(unix_s, span_s, &f);

	snprintf(hour, sizeof(hour), "%.*s", DISK_HOUR_TEXT - 1, f.name);
	if (r == 0)
		r = open_hour(d, hour, &dir);
	if (r == 0)
		r = write_file(dir, f.name + DISK_HOUR_TEXT, data, size);
	if (r == 0)
		r = disk_tree_add(&d->tree, &f);
	if (r == 0)
		d->bytes += blocks_of(size);
	return r;
}

static int try_write(struct disk *d, uint64_t unix_ns, const void *data, size_t size)
{
	if (blocks_of(size) > d->max_bytes)
		return -EFBIG;
	while (d->tree.n && d->bytes + blocks_of(size) > d->max_bytes)
		remove_oldest(d);
	return write_new(d, (int64_t)(unix_ns / 1000000000u), 0, data, size);
}

int disk_write(struct disk *d, uint64_t unix_ns, const void *data, size_t size, struct diag *diag)
{
	int r = try_write(d, unix_ns, data, size);

	if (r == 0)
		return 0;
	d->failed++;
	return diag_errno(diag, -r, "cannot write intervals to '%.200s'", d->path);
}

/* ---- merging ---- */

static int64_t end_of_span(int64_t unix_s, uint32_t span_s)
{
	return (unix_s + span_s - 1) / span_s * span_s;
}

/* Collects the cuts from this position to the end of their span. Returns their number. */
static size_t collect(const struct disk *d, size_t first, int64_t end_s, struct disk_due *ret)
{
	char last[DISK_PREFIX_TEXT];
	size_t n = 0;

	disk_file_prefix(end_s, last);
	for (size_t i = first; i < d->tree.n && n < DISK_DUE_MAX &&
			       strncmp(d->tree.v[i].name, last, DISK_PREFIX_TEXT - 1) <= 0;
	     i++)
		if (!disk_file_span(&d->tree.v[i]))
			memcpy(ret->names[n++], d->tree.v[i].name, DISK_NAME_TEXT);
	return n;
}

bool disk_due(struct disk *d, int64_t before_s, uint32_t span_s, struct disk_due *ret)
{
	char from[DISK_PREFIX_TEXT];

	disk_file_prefix(d->merged_until_s + 1, from);
	for (size_t i = disk_tree_find(&d->tree, from); i < d->tree.n; i++) {
		const int64_t at = disk_file_time(&d->tree.v[i]);

		if (disk_file_span(&d->tree.v[i]) || at <= d->merged_until_s)
			continue;
		ret->end_s = end_of_span(at, span_s);
		ret->span_s = span_s;
		if (ret->end_s > before_s)
			return false;
		d->merged_until_s = ret->end_s;
		ret->n = collect(d, i, ret->end_s, ret);
		if (ret->n > 1)
			return true;
	}
	return false;
}

/* Older files make place, but not those that are merged: these go anyway. */
static int make_place(struct disk *d, const char *first, size_t size)
{
	while (d->tree.n && d->bytes + blocks_of(size) > d->max_bytes) {
		if (strcmp(d->tree.v[0].name, first) >= 0)
			return -ENOSPC;
		remove_oldest(d);
	}
	return 0;
}

static int replace(struct disk *d, const struct disk_due *due, const char *const *names, size_t n,
		   const void *data, size_t size)
{
	_cleanup_close_ int lock = -1;
	int r = n ? disk_lock(d->dir, true, &lock) : -EINVAL;

	if (r == 0)
		r = make_place(d, names[0], size);
	if (r == 0)
		r = write_new(d, due->end_s, due->span_s, data, size);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const size_t at = disk_tree_find(&d->tree, names[i]);

		if (at < d->tree.n && strcmp(d->tree.v[at].name, names[i]) == 0)
			(void)remove_file(d, at);
	}
	return r;
}

int disk_merge(struct disk *d, const struct disk_due *due, const char *const *names, size_t n,
	       const void *data, size_t size, struct diag *diag)
{
	int r = replace(d, due, names, n, data, size);

	if (r == -EAGAIN)
		return r;
	d->merged += r == 0;
	return r < 0 ? diag_errno(diag, -r, "cannot merge intervals in '%.200s'", d->path) : 0;
}

int disk_descriptor(const struct disk *d)
{
	return d->dir;
}

struct disk_counts disk_counts(const struct disk *d)
{
	return (struct disk_counts){.files = d->tree.n,
				    .bytes = d->bytes,
				    .max_bytes = d->max_bytes,
				    .removed = d->removed,
				    .merged = d->merged,
				    .failed = d->failed};
}
