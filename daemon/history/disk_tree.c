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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

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

void disk_tree_remove_first(struct disk_tree *t)
{
	t->n--;
	memmove(t->v, t->v + 1, t->n * sizeof(*t->v));
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
	if (has_shape(name, "000000-xxxxxxxx.gz"))
		return append(&t->v, &t->n, &t->room, &f);
	if (has_shape(name, DISK_LEFT_PREFIX "000000-xxxxxxxx.gz"))
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
	*ret = t;
	return 0;
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
