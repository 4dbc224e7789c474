// SPDX-License-Identifier: BSD-2-Clause
/* Intervals on disk, written by the daemon: see disk.h. */
#include "history/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/safepath.h"
#include "history/disk_tree.h"

#define BLOCK 4096u

struct disk {
	char *path;
	int dir;
	struct disk_tree tree; /* oldest first */
	uint64_t bytes, max_bytes, removed, failed;
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

/* What another run of the daemon had not completed. */
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

static void remove_oldest(struct disk *d)
{
	struct disk_file *f = &d->tree.v[0];
	char hour[DISK_HOUR_TEXT];

	if (unlinkat(d->dir, f->name, 0) == 0 || errno == ENOENT)
		d->removed++;
	d->bytes -= blocks_of(f->size);
	snprintf(hour, sizeof(hour), "%.*s", DISK_HOUR_TEXT - 1, f->name);
	disk_tree_remove_first(&d->tree);
	if (!d->tree.n || strncmp(d->tree.v[0].name, hour, DISK_HOUR_TEXT - 1) != 0)
		(void)unlinkat(d->dir, hour, AT_REMOVEDIR);
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

static int name_of(uint64_t unix_ns, struct disk_file *f)
{
	const time_t t = (time_t)(unix_ns / 1000000000u);
	char hour[DISK_HOUR_TEXT], clock[8];
	uint32_t unique;
	struct tm tm;

	if (getrandom(&unique, sizeof(unique), 0) != sizeof(unique) || !gmtime_r(&t, &tm))
		return -EINVAL;
	strftime(hour, sizeof(hour), "%Y-%m-%dT%H", &tm);
	strftime(clock, sizeof(clock), "%H%M%S", &tm);
	snprintf(f->name, sizeof(f->name), "%s/%s-%08x.gz", hour, clock, unique);
	return 0;
}

static int try_write(struct disk *d, uint64_t unix_ns, const void *data, size_t size)
{
	_cleanup_close_ int dir = -1;
	struct disk_file f = {.size = size};
	char hour[DISK_HOUR_TEXT];
	int r = name_of(unix_ns, &f);

	if (r == 0 && blocks_of(size) > d->max_bytes)
		r = -EFBIG;
	while (r == 0 && d->tree.n && d->bytes + blocks_of(size) > d->max_bytes)
		remove_oldest(d);
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

int disk_write(struct disk *d, uint64_t unix_ns, const void *data, size_t size, struct diag *diag)
{
	int r = try_write(d, unix_ns, data, size);

	if (r == 0)
		return 0;
	d->failed++;
	return diag_errno(diag, -r, "cannot write intervals to '%.200s'", d->path);
}

struct disk_counts disk_counts(const struct disk *d)
{
	return (struct disk_counts){.files = d->tree.n,
				    .bytes = d->bytes,
				    .max_bytes = d->max_bytes,
				    .removed = d->removed,
				    .failed = d->failed};
}
