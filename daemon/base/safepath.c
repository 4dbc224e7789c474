// SPDX-License-Identifier: BSD-2-Clause
/* Resolving paths in directories that other users can write to: see safepath.h. */
#include "base/safepath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LINKS_MAX 40 /* as the kernel's MAXSYMLINKS */
#define DIR_FLAGS (O_PATH | O_CLOEXEC)

/* A path being resolved: `rest` remains, relative to dir. */
struct walk {
	int dir;
	char *rest; /* owned */
	unsigned int links;
};

static void walk_deinit(struct walk *w)
{
	closep(&w->dir);
	free(w->rest);
}

static int restart(struct walk *w, const char *path)
{
	int fd = open(*path == '/' ? "/" : ".", DIR_FLAGS | O_DIRECTORY);

	if (fd < 0)
		return -errno;
	closep(&w->dir);
	w->dir = fd;
	return 0;
}

static int refuse_link(const char *name, const struct stat *st, struct diag *diag)
{
	return diag_set(diag, -EPERM, PYP_EXIT_FAILURE,
			"use the link's target, or a directory of your own",
			"the symbolic link '%.200s' belongs to another user (uid %u)", name,
			st->st_uid);
}

/* Follow the symbolic link fd; tail is the rest of the path after it. */
static int follow(struct walk *w, int fd, const char *tail)
{
	char target[PATH_MAX], *rest;
	ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if (asprintf(&rest, "%s%s%s", target, *tail ? "/" : "", tail) < 0)
		return -ENOMEM;
	free(w->rest);
	w->rest = rest;
	return *target == '/' ? restart(w, target) : 0;
}

/* Resolve one component. Returns 1 for the last one, whose name is then in *ret_name. */
static int step(struct walk *w, char **ret_name, struct diag *diag)
{
	char *name = w->rest + strspn(w->rest, "/"), *tail = name + strcspn(name, "/");
	_cleanup_close_ int fd = -1;
	bool last;
	struct stat st;

	if (*tail)
		*tail++ = '\0';
	tail += strspn(tail, "/");
	last = !*tail;
	if (!*name)
		name = (char *)".";
	fd = openat(w->dir, name, DIR_FLAGS | O_NOFOLLOW);
	if (fd < 0 && (errno != ENOENT || !last))
		return -errno;
	if (fd >= 0 && fstat(fd, &st) < 0)
		return -errno;
	if (fd >= 0 && S_ISLNK(st.st_mode)) {
		if (st.st_uid != 0 && st.st_uid != geteuid())
			return refuse_link(name, &st, diag);
		return follow(w, fd, tail);
	}
	if (last) {
		*ret_name = strdup(name);
		return *ret_name ? 1 : -ENOMEM;
	}
	closep(&w->dir);
	w->dir = TAKE_FD(fd);
	memmove(w->rest, tail, strlen(tail) + 1);
	return 0;
}

int safepath_open_parent(const char *path, int *ret_dir, char **ret_name, struct diag *diag)
{
	_cleanup_(walk_deinit) struct walk w = {.dir = -1, .rest = strdup(path)};
	int r = w.rest ? restart(&w, path) : -ENOMEM;

	while (r == 0)
		r = step(&w, ret_name, diag);
	if (r < 0)
		return r;
	*ret_dir = TAKE_FD(w.dir);
	return 0;
}

bool safepath_is_private(const struct stat *dir)
{
	return dir->st_uid == geteuid() && !(dir->st_mode & (S_IWGRP | S_IWOTH));
}
