// SPDX-License-Identifier: BSD-2-Clause
/* The files in a directory of intervals: see disk_tree.h. */
#include "history/disk_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "history/disk_index.h"
#include "history/gz.h"

/* Names in a directory of an hour */
#define CUT    "000000-xxxxxxxx.gz"
#define MERGED "000000-xxxxxxxx-0000.gz"

/* Does text have this shape: 0 for a digit, x for a hex digit, else itself? */
static bool has_shape(const char *text, const char *shape)
{
	for (; *shape; shape++, text++) {
		bool fits = *shape == '0'   ? isdigit((unsigned char)*text) != 0
			    : *shape == 'x' ? isxdigit((unsigned char)*text) != 0
					    : *text == *shape;

		if (!fits)
			return false;
	}
	return !*text;
}

static int append(struct disk_file **v, size_t *n, size_t *room, const struct disk_file *f)
{
	if (*n == DISK_FILES_MAX)
		return -ENFILE;
	if (*n == *room) {
		size_t want = *room ? 2 * *room : 256;
		struct disk_file *more = reallocarray(*v, want, sizeof(*more));

		if (!more)
			return -ENOMEM;
		*v = more;
		*room = want;
	}
	(*v)[(*n)++] = *f;
	return 0;
}

int disk_tree_add(struct disk_tree *t, const struct disk_file *f)
{
	int r = append(&t->v, &t->n, &t->room, f);

	/* Files are written in order, unless the clock was set back. */
	for (size_t i = t->n - 1; r == 0 && i > 0 && strcmp(t->v[i - 1].name, f->name) > 0; i--) {
		t->v[i] = t->v[i - 1];
		t->v[i - 1] = *f;
	}
	return r;
}

void disk_tree_remove(struct disk_tree *t, size_t at)
{
	t->n--;
	memmove(t->v + at, t->v + at + 1, (t->n - at) * sizeof(*t->v));
}

size_t disk_tree_find(const struct disk_tree *t, const char *name)
{
	size_t from = 0, to = t->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (strcmp(t->v[middle].name, name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void disk_tree_deinit(struct disk_tree *t)
{
	free(t->v);
	free(t->left);
	*t = (struct disk_tree){0};
}

/* ---- scanning ---- */

static int take_file(struct disk_tree *t, int dir, const char *hour, const char *name)
{
	struct disk_file f = {0};
	struct stat st;

	if ((size_t)snprintf(f.name, sizeof(f.name), "%s/%s", hour, name) >= sizeof(f.name) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	f.size = (uint64_t)st.st_size;
	if (has_shape(name, CUT) || has_shape(name, MERGED))
		return append(&t->v, &t->n, &t->room, &f);
	if (has_shape(name, DISK_LEFT_PREFIX CUT) || has_shape(name, DISK_LEFT_PREFIX MERGED))
		return append(&t->left, &t->nleft, &t->left_room, &f);
	return 0;
}

/* A hour's directory that has been removed meanwhile, or is none, is left out. */
static int scan_hour(struct disk_tree *t, int dir, const char *hour)
{
	int fd = openat(dir, hour, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	struct dirent *e;
	DIR *d;

	if (fd < 0)
		return 0;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	while (r == 0 && (e = readdir(d)))
		r = take_file(t, fd, hour, e->d_name);
	closedir(d);
	return r;
}

/* ---- merged files ---- */

/* Is there a file of a cut in the time of a merged one? */
static bool has_cuts(const struct disk_tree *t, const struct disk_file *merged)
{
	char from[DISK_PREFIX_TEXT];

	disk_file_prefix(disk_file_time(merged) - disk_file_span(merged), from);
	for (size_t i = disk_tree_find(t, from);
	     i < t->n && strncmp(t->v[i].name, merged->name, DISK_PREFIX_TEXT - 1) <= 0; i++)
		if (!disk_file_span(&t->v[i]))
			return true;
	return false;
}

static void mark(void *ctx, const char *name)
{
	struct disk_tree *t = ctx;
	const size_t i = disk_tree_find(t, name);

	if (i < t->n && strcmp(t->v[i].name, name) == 0)
		t->v[i].replaced = !disk_file_span(&t->v[i]);
}

/*
 * If the daemon was killed after it had written a merged file, the files that this one replaces are
 * still there. If its index is damaged, they count.
 */
static void mark_replaced(struct disk_tree *t, int dir, const struct disk_file *merged)
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0, at = 0;

	if (disk_file_read(dir, merged->name, &data, &size) == 0)
		(void)disk_index_read(data, size, mark, t, &at);
}

static int resolve(struct disk_tree *t, int dir)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < t->n; i++)
		if (disk_file_span(&t->v[i]) && has_cuts(t, &t->v[i]))
			mark_replaced(t, dir, &t->v[i]);
	for (size_t i = 0; i < t->n && r == 0; i++)
		if (t->v[i].replaced)
			r = append(&t->left, &t->nleft, &t->left_room, &t->v[i]);
		else
			t->v[kept++] = t->v[i];
	t->n = kept;
	return r;
}

/* ---- the directory ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct disk_file *)a)->name, ((const struct disk_file *)b)->name);
}

int disk_tree_scan(int dir, struct disk_tree *ret)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	struct disk_tree t = {0};
	struct dirent *e;
	DIR *d;

	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		r = -errno;
		closep(&fd);
		return r;
	}
	while (r == 0 && (e = readdir(d)))
		if (has_shape(e->d_name, "0000-00-00T00"))
			r = scan_hour(&t, dir, e->d_name);
	closedir(d);
	if (r < 0) {
		disk_tree_deinit(&t);
		return r;
	}
	if (t.n)
		qsort(t.v, t.n, sizeof(*t.v), by_name);
	r = resolve(&t, dir);
	if (r < 0)
		disk_tree_deinit(&t);
	else
		*ret = t;
	return r;
}

/* n digits of a name of the right shape. */
static int digits(const char *name, int at, int n)
{
	int v = 0;

	for (int i = at; i < at + n; i++)
		v = 10 * v + (name[i] - '0');
	return v;
}

int64_t disk_file_time(const struct disk_file *f)
{
	struct tm tm = {
		.tm_year = digits(f->name, 0, 4) - 1900,
		.tm_mon = digits(f->name, 5, 2) - 1,
		.tm_mday = digits(f->name, 8, 2),
		.tm_hour = digits(f->name, DISK_HOUR_TEXT, 2),
		.tm_min = digits(f->name, DISK_HOUR_TEXT + 2, 2),
		.tm_sec = digits(f->name, DISK_HOUR_TEXT + 4, 2),
	};

	return timegm(&tm);
}

void disk_file_prefix(int64_t unix_s, char out[DISK_PREFIX_TEXT])
{
	const time_t t = (time_t)unix_s;
	struct tm tm = {0};

	out[0] = '\0';
	if (gmtime_r(&t, &tm))
		strftime(out, DISK_PREFIX_TEXT, "%Y-%m-%dT%H/%H%M%S", &tm);
}

int64_t disk_file_span(const struct disk_file *f)
{
	const char *name = f->name + DISK_HOUR_TEXT;

	return has_shape(name, MERGED) ? digits(name, (int)strlen("000000-xxxxxxxx-"), 4) : 0;
}

int disk_file_read(int dir, const char *name, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_free_ char *data = NULL;
	struct stat st;
	size_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > GZ_MAX_BYTES)
		return -EFBIG;
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = read(fd, data + n, (size_t)st.st_size - n);

		if (got < 0)
			return -errno;
		if (!got)
			break;
		n += (size_t)got;
	}
	*ret = TAKE_PTR(data);
	*ret_size = n;
	return 0;
}

/* ---- lock ---- */

#define LOCK ".lock"

int disk_lock(int dir, bool exclusive, int *ret)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_RDONLY;
	_cleanup_close_ int fd = openat(dir, LOCK, flags | (exclusive ? O_CREAT : 0), 0600);
	int r;

	*ret = -1;
	if (fd < 0)
		return errno == ENOENT && !exclusive ? 0 : -errno;
	do
		r = flock(fd, exclusive ? LOCK_EX | LOCK_NB : LOCK_SH);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}
