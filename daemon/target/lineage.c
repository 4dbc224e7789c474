// SPDX-License-Identifier: BSD-2-Clause
/* A process's exec id, children and start time: see target.h. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/strtab.h"
#include "base/clock.h"
#include "target/memory.h"
#include "target/proc.h"
#include "target/target.h"

#define AUXV_MAX     16384
#define RANDOM_BYTES 16
#define LIST_MAX     ((size_t)1 << 20)

/* The address of the exec's 16 random bytes; 0: none. */
static uint64_t random_address(const char *auxv, size_t size)
{
	for (size_t at = 0; at + 16 <= size; at += 16) {
		uint64_t pair[2];

		memcpy(pair, auxv + at, sizeof(pair));
		if (pair[0] == AT_RANDOM)
			return pair[1];
	}
	return 0;
}

uint64_t target_exec_id(const struct target *t)
{
	_cleanup_free_ char *auxv = NULL;
	struct memory mem = target_memory(t);
	unsigned char bytes[RANDOM_BYTES];
	uint64_t id;
	size_t size;
	int fd = target_open_part(t, TARGET_AUXV, 0, 0);

	if (fd < 0 || proc_read_fd(fd, AUXV_MAX, &auxv, &size) || !size)
		return 0;
	if (memory_read(&mem, random_address(auxv, size), bytes, sizeof(bytes)))
		return 0;
	id = strtab_hash(strtab_hash(0, auxv, size), bytes, sizeof(bytes));
	return id ? id : 1;
}

/* Parse one thread's list of children. */
static size_t take_pids(const char *list, pid_t *out, size_t max)
{
	size_t n = 0;

	while (n < max) {
		char *end;
		long v = strtol(list, &end, 10);

		if (end == list)
			break;
		if (v > 0 && v <= INT32_MAX)
			out[n++] = (pid_t)v;
		list = end;
	}
	return n;
}

/* A thread's list has the children that it forked, and orphans that it adopted. */
size_t target_children(pid_t pid, pid_t *out, size_t max)
{
	_cleanup_(closedirp) DIR *d = NULL;
	struct dirent *e;
	char path[300];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && n < max && (e = readdir(d))) {
		_cleanup_free_ char *list = NULL;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, e->d_name);
		if (e->d_name[0] != '.' && !proc_read(AT_FDCWD, path, LIST_MAX, &list, NULL))
			n += take_pids(list, out + n, max - n);
	}
	return n;
}

/* The kernel reports the start time since boot, including suspended time. */
uint64_t target_started_ns(const struct target *t)
{
	uint64_t boot = t->starttime * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	uint64_t age = clock_ns(CLOCK_BOOTTIME), now = clock_ns(CLOCK_MONOTONIC);

	age = age > boot ? age - boot : 0;
	return now > age ? now - age : 0;
}
