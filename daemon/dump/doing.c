// SPDX-License-Identifier: BSD-2-Clause
/* Reads what a thread is doing: see doing.h. */
#include "dump/doing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/syscalls.h"
#include "target/proc.h"

#define TEXT_MAX 4096

int doing_parse(const char *text, struct doing_call *ret)
{
	struct doing_call c = {.nr = -1};
	char *end;

	if (strncmp(text, "running", 7) == 0) {
		c.running = true;
		*ret = c;
		return 0;
	}
	errno = 0;
	c.nr = strtol(text, &end, 10);
	if (end == text || errno)
		return -EINVAL;
	for (unsigned int i = 0; c.nr >= 0 && i < 2; i++) {
		const char *from = end;

		c.arg[i] = strtoull(from, &end, 16);
		if (end == from || errno)
			return -EINVAL;
	}
	*ret = c;
	return 0;
}

bool doing_takes_descriptor(const char *name)
{
	static const char *const with[] = {
		"read",	      "write",	      "readv",		 "writev",	    "pread64",
		"pwrite64",   "preadv",	      "pwritev",	 "preadv2",	    "pwritev2",
		"recvfrom",   "sendto",	      "recvmsg",	 "sendmsg",	    "recvmmsg",
		"sendmmsg",   "connect",      "accept",		 "accept4",	    "fsync",
		"fdatasync",  "epoll_wait",   "epoll_pwait",	 "flock",	    "sendfile",
		"getdents64", "epoll_pwait2", "fallocate",	 "ftruncate",	    "ioctl",
		"close",      "splice",	      "copy_file_range", "sync_file_range",
	};

	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		if (strcmp(with[i], name) == 0)
			return true;
	return false;
}

static void put_descriptor(pid_t pid, uint64_t fd, char *out, size_t size)
{
	char path[64], link[192];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%" PRIu64, pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0) {
		snprintf(out, size, " of descriptor %" PRIu64, fd);
		return;
	}
	link[n] = '\0';
	snprintf(out, size, " of descriptor %" PRIu64 " (%s)", fd, link);
}

void doing_read(pid_t pid, pid_t tid, char *out, size_t size)
{
	_cleanup_free_ char *text = NULL;
	char path[64], number[SYSCALL_NAME_MAX];
	struct doing_call c;
	const char *name;
	size_t n;

	out[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	if (proc_read(AT_FDCWD, path, TEXT_MAX, &text, NULL) || doing_parse(text, &c))
		return;
	if (c.running || c.nr < 0) {
		snprintf(out, size, "%s", c.running ? "running" : "page fault");
		return;
	}
	name = syscall_name(c.nr, number, sizeof(number));
	n = (size_t)snprintf(out, size, "%s", name);
	if (n < size && doing_takes_descriptor(name))
		put_descriptor(pid, c.arg[0] & UINT32_MAX, out + n, size - n);
}
