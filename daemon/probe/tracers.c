// SPDX-License-Identifier: BSD-2-Clause
/* Other tracers' links: see tracers.h. */
#include "probe/tracers.h"

#include <bpf/bpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "target/deadline.h"
#include "target/proc.h"

#define LINK_UPROBE_MULTI 12
#define OWN_MAX		  4096u
#define OFFSETS_MAX	  4096u
#define STATUS_MAX	  65536u

/* bpf_link_info with its uprobe_multi, from the kernel's uapi as of 6.8. */
struct link_info {
	uint32_t type, id, prog_id, pad;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t path_size, count, flags, pid;
};

_Static_assert(sizeof(struct link_info) == 64, "link_info changed size");

/* ---- own links --------------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	uint32_t ids[OWN_MAX]; /* 0: unused */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool own_replace(uint32_t from, uint32_t to)
{
	bool found = false;

	pthread_mutex_lock(&own.lock);
	for (uint32_t i = 0; i < OWN_MAX && !found; i++) {
		found = own.ids[i] == from;
		if (found)
			own.ids[i] = to;
	}
	pthread_mutex_unlock(&own.lock);
	return found;
}

static bool is_own(uint32_t id)
{
	return own_replace(id, id);
}

static int get_info(int fd, struct link_info *info)
{
	uint32_t len = sizeof(*info);

	return bpf_obj_get_info_by_fd(fd, info, &len);
}

void tracers_add_own(int link_fd, uint32_t *ret_id)
{
	struct link_info info = {0};

	*ret_id = get_info(link_fd, &info) == 0 && own_replace(0, info.id) ? info.id : 0;
}

void tracers_drop_own(uint32_t id)
{
	if (id)
		(void)own_replace(id, 0);
}

/* ---- owners ----------------------------------------------------------------------------- */

static bool fd_is_link(int fds, const char *name)
{
	char text[64];
	ssize_t n = readlinkat(fds, name, text, sizeof(text) - 1);

	if (n < 0)
		return false;
	text[n] = '\0';
	return strncmp(text, "anon_inode:bpf", 14) == 0;
}

static bool has_link(const char *pid, uint32_t id)
{
	char path[300], want[32];
	struct dirent *e;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	snprintf(want, sizeof(want), "%u", id);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir))) {
		_cleanup_free_ char *text = NULL;
		const char *value;

		if (!fd_is_link(dirfd(dir), e->d_name))
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/fdinfo/%.20s", pid, e->d_name);
		if (proc_read(AT_FDCWD, path, STATUS_MAX, &text, NULL) < 0)
			continue;
		value = proc_field(text, "link_id");
		found = value && strtoul(value, NULL, 10) == id;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Maps a holder process to its daemon. */
static pid_t daemon_of(const char *pid)
{
	_cleanup_free_ char *text = NULL;
	const char *name, *parent;
	char path[300];

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	if (proc_read(AT_FDCWD, path, STATUS_MAX, &text, NULL) < 0)
		return 0;
	name = proc_field(text, "Name");
	parent = proc_field(text, "PPid");
	if (name && parent && strncmp(name, TRACERS_HOLDER, strlen(TRACERS_HOLDER)) == 0)
		return (pid_t)strtol(parent, NULL, 10);
	return (pid_t)strtol(pid, NULL, 10);
}

struct link_search {
	char pid[16];
	uint32_t id;
	pid_t found; /* 0: the process does not have the link */
};

static int do_search(void *job)
{
	struct link_search *s = job;

	if (has_link(s->pid, s->id))
		s->found = daemon_of(s->pid);
	return 0;
}

/* Reading the descriptors of a process that is stuck in an exec can block. Returns 0 or -errno. */
static int search_in(const char *pid, uint32_t id, pid_t *ret)
{
	struct link_search *s = calloc(1, sizeof(*s));
	void *job = s;
	int r;

	if (!s)
		return -ENOMEM;
	snprintf(s->pid, sizeof(s->pid), "%.15s", pid);
	s->id = id;
	r = deadline_run((pid_t)strtol(pid, NULL, 10), do_search, &job, free);
	if (r == 0)
		*ret = s->found;
	free(job);
	return r;
}

/* all: set to whether every process was examined or the owner was found. */
static pid_t search_owner(uint32_t id, bool *all)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	*all = true;
	while (dir && !found && (e = readdir(dir)))
		if (isdigit((unsigned char)*e->d_name) && search_in(e->d_name, id, &found) < 0)
			*all = false;
	if (dir)
		closedir(dir);
	*all |= found != 0;
	return found;
}

/* Cached, because link ids are never reused and searching all processes takes long. */
static pid_t owner_of(uint32_t id)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint32_t last_id;
	static pid_t last;
	pid_t found;
	bool all = true;

	pthread_mutex_lock(&lock);
	found = last_id == id ? last : search_owner(id, &all);
	if (all) {
		last = found;
		last_id = id;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- searching --------------------------------------------------------------------------- */

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool overlaps(const struct tracers_of *of, const uint64_t *offsets, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < of->n; k++)
			if (offsets[i] == of->offsets[k])
				return true;
	return false;
}

/* Returns 1 if the link has probes at the plan's sites in this process, 0 if not, or -errno. */
static int is_at_sites(int fd, const struct tracers_of *of)
{
	_cleanup_free_ uint64_t *offsets = calloc(OFFSETS_MAX, sizeof(*offsets));
	char path[PATH_MAX] = "";
	struct link_info info = {
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.path_size = sizeof(path),
		.count = OFFSETS_MAX,
	};

	if (!offsets)
		return -ENOMEM;
	/* With ENOSPC the link has more offsets than requested; the first ones were returned. */
	if (get_info(fd, &info) < 0 && errno != ENOSPC)
		return -errno;
	if (info.pid != 0 && info.pid != (uint32_t)of->pid)
		return 0;
	if (info.pid == 0 && !same_file(path, of->path))
		return 0;
	return overlaps(of, offsets, info.count < OFFSETS_MAX ? info.count : OFFSETS_MAX);
}

/* Returns 1 for another program's link at the plan's sites, 0 for any other link, or -errno. */
static int look_at(uint32_t id, const struct tracers_of *of)
{
	_cleanup_close_ int fd = bpf_link_get_fd_by_id(id);
	struct link_info info = {0};

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* the link was released */
	if (get_info(fd, &info) < 0)
		return -errno;
	if (info.type != LINK_UPROBE_MULTI || is_own(id))
		return 0;
	return is_at_sites(fd, of);
}

int tracers_find(const struct tracers_of *of, struct tracers *ret)
{
	uint32_t id = 0, last = 0;

	*ret = (struct tracers){0};
	while (bpf_link_get_next_id(id, &id) == 0) {
		int r = look_at(id, of);

		/* Before 6.8, the kernel does not report what links probe. */
		if (r == -EPERM || r == -EACCES)
			return r;
		if (r <= 0)
			continue;
		ret->links++;
		last = id;
	}
	if (errno == EPERM)
		return -EPERM;
	if (ret->links)
		ret->owner = owner_of(last);
	return 0;
}
