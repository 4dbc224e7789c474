// SPDX-License-Identifier: BSD-2-Clause
/* A control group for a scratch process: see scratch_group.h. */
#include "verify/scratch_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "target/proc.h"

#define TEXT_LIMIT (1u << 20)
#define PREFIX	   "pyprofd-scratch-"

/* An interpreter needs a tenth. Tasks are the keeper, the interpreter and its threads. */
#define MEMORY "268435456"
#define TASKS  "16"

/* A reaped process may stay in its group for a moment. */
#define END_TRIES 50

/* ---- finding the group ------------------------------------------------------------------- */

/* Does a comma-separated list contain a word? */
static bool has_word(const char *list, size_t n, const char *word)
{
	size_t len = strlen(word);

	for (size_t at = 0; at + len <= n; at++) {
		if ((at == 0 || list[at - 1] == ',') && (at + len == n || list[at + len] == ',') &&
		    memcmp(list + at, word, len) == 0)
			return true;
	}
	return false;
}

/* The path of our group, in a line "ID:CONTROLLERS:PATH". */
static int own_group(const char *groups, const char *controller, const char **ret, size_t *n)
{
	for (const char *line = groups; *line;) {
		const char *end = strchrnul(line, '\n'),
			   *a = memchr(line, ':', (size_t)(end - line)),
			   *b = a ? memchr(a + 1, ':', (size_t)(end - a - 1)) : NULL;

		if (b &&
		    (*controller ? has_word(a + 1, (size_t)(b - a - 1), controller) : b == a + 1)) {
			*ret = b + 1;
			*n = (size_t)(end - b - 1);
			return 0;
		}
		line = *end ? end + 1 : end;
	}
	return -ENOENT;
}

struct mount_line {
	const char *root, *point, *type, *options;
	size_t nroot, npoint, ntype, noptions;
};

/* Word number k of a line, counted from 0. */
static const char *word_of(const char *line, const char *end, unsigned int k, size_t *n)
{
	const char *blank;

	while (k-- && line < end) {
		blank = memchr(line, ' ', (size_t)(end - line));
		line = blank ? blank + 1 : end;
	}
	blank = memchr(line, ' ', (size_t)(end - line));
	*n = (size_t)((blank ? blank : end) - line);
	return line;
}

/* "ID PARENT DEV ROOT POINT OPTIONS [FIELD]... - TYPE SOURCE SUPEROPTIONS" */
static bool parse_mount(const char *line, const char *end, struct mount_line *ret)
{
	const char *dash = memmem(line, (size_t)(end - line), " - ", 3);

	if (!dash)
		return false;
	ret->root = word_of(line, dash, 3, &ret->nroot);
	ret->point = word_of(line, dash, 4, &ret->npoint);
	ret->type = word_of(dash + 3, end, 0, &ret->ntype);
	ret->options = word_of(dash + 3, end, 2, &ret->noptions);
	return ret->nroot && ret->npoint;
}

static bool is_hierarchy(const struct mount_line *m, const char *controller)
{
	const char *type = *controller ? "cgroup" : "cgroup2";

	return m->ntype == strlen(type) && memcmp(m->type, type, m->ntype) == 0 &&
	       (!*controller || has_word(m->options, m->noptions, controller));
}

int scratch_group_dir(const char *mounts, const char *groups, const char *controller, char *out,
		      size_t size)
{
	const char *path;
	size_t n;

	if (own_group(groups, controller, &path, &n) < 0)
		return -ENOENT;
	for (const char *line = mounts; *line;) {
		const char *end = strchrnul(line, '\n');
		struct mount_line m;
		size_t skip;

		if (parse_mount(line, end, &m) && is_hierarchy(&m, controller)) {
			skip = m.nroot > 1 ? m.nroot : 0;
			if (skip > n || memcmp(path, m.root, skip) != 0 ||
			    (skip && skip < n && path[skip] != '/') || memmem(path, n, "/..", 3))
				return -ENOENT;
			if (m.npoint + n - skip + 1 > size)
				return -ENAMETOOLONG;
			snprintf(out, size, "%.*s%.*s", (int)m.npoint, m.point, (int)(n - skip),
				 path + skip);
			return 0;
		}
		line = *end ? end + 1 : end;
	}
	return -ENOENT;
}

/* ---- creating groups --------------------------------------------------------------------- */

static int write_text(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

/* Remove groups that earlier processes could not remove. Removing a group in use fails. */
static void remove_stale(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		long pid;

		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		pid = strtol(e->d_name + strlen(PREFIX), NULL, 10);
		if (pid == getpid() || (pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH))
			(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

/* Create a group in dir; on success it is the last in g. */
static int make_group(struct scratch_group *g, const char *dir)
{
	static unsigned int made;
	char procs[PATH_MAX + 64];
	char *path = g->v[g->n].path;

	remove_stale(dir);
	if (snprintf(path, PATH_MAX, "%s/" PREFIX "%d-%u", dir, (int)getpid(), made++) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (mkdir(path, 0755) < 0)
		return -errno;
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	g->v[g->n].procs = open(procs, O_WRONLY | O_CLOEXEC);
	if (g->v[g->n].procs < 0) {
		(void)rmdir(path);
		return -EACCES;
	}
	g->n++;
	return 0;
}

static void drop_last(struct scratch_group *g)
{
	g->n--;
	(void)close(g->v[g->n].procs);
	(void)rmdir(g->v[g->n].path);
}

static bool make_v1(struct scratch_group *g, const char *mounts, const char *groups,
		    const char *controller, const char *file, const char *limit)
{
	char dir[PATH_MAX - 64];

	if (scratch_group_dir(mounts, groups, controller, dir, sizeof(dir)) < 0 ||
	    make_group(g, dir) < 0)
		return false;
	if (write_text(g->v[g->n - 1].path, file, limit) == 0)
		return true;
	drop_last(g);
	return false;
}

/*
 * In version 2, a group with processes cannot enable controllers for its children, unless it is the
 * root. If ours is a leaf of a delegated group (systemd's DelegateSubgroup=), create a sibling.
 */
static void make_v2(struct scratch_group *g, const char *mounts, const char *groups)
{
	char dir[PATH_MAX - 64], delegated[8] = "";

	if (scratch_group_dir(mounts, groups, "", dir, sizeof(dir)) < 0)
		return;
	if (write_text(dir, "cgroup.subtree_control", "+memory +pids") < 0) {
		*strrchr(dir, '/') = '\0';
		if (getxattr(dir, "user.delegate", delegated, sizeof(delegated)) < 1 ||
		    *delegated != '1' ||
		    write_text(dir, "cgroup.subtree_control", "+memory +pids") < 0)
			return;
	}
	if (make_group(g, dir) < 0)
		return;
	g->memory = write_text(g->v[g->n - 1].path, "memory.max", MEMORY) == 0;
	g->pids = write_text(g->v[g->n - 1].path, "pids.max", TASKS) == 0;
	(void)write_text(g->v[g->n - 1].path, "memory.swap.max", "0");
	if (!g->memory && !g->pids)
		drop_last(g);
}

void scratch_group_new(struct scratch_group *ret)
{
	_cleanup_free_ char *mounts = NULL, *groups = NULL;

	ret->n = 0;
	ret->memory = ret->pids = false;
	if (proc_read(AT_FDCWD, "/proc/self/mountinfo", TEXT_LIMIT, &mounts, NULL) < 0 ||
	    proc_read(AT_FDCWD, "/proc/self/cgroup", TEXT_LIMIT, &groups, NULL) < 0)
		return;
	ret->memory = make_v1(ret, mounts, groups, "memory", "memory.limit_in_bytes", MEMORY);
	ret->pids = make_v1(ret, mounts, groups, "pids", "pids.max", TASKS);
	if (!ret->n)
		make_v2(ret, mounts, groups);
}

int scratch_group_join(const struct scratch_group *g)
{
	for (unsigned int i = 0; i < g->n; i++)
		if (write(g->v[i].procs, "0", 1) != 1)
			return -errno;
	return 0;
}

void scratch_group_end(struct scratch_group *g)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	for (unsigned int i = 0; i < g->n; i++) {
		(void)close(g->v[i].procs);
		for (int tries = 0; rmdir(g->v[i].path) < 0 && errno == EBUSY && tries < END_TRIES;
		     tries++)
			(void)nanosleep(&moment, NULL);
	}
	g->n = 0;
}
