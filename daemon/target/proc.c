// SPDX-License-Identifier: BSD-2-Clause
/* Reading files in /proc: see proc.h. */
#include "target/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STAT_MAX   4096
#define PF_EXITING 0x4 /* include/linux/sched.h */

/* Read until end of file or size bytes. Returns the number of bytes or a negative errno. */
static ssize_t read_until(int fd, char *buf, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = read(fd, buf + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int proc_read(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return proc_read_fd(fd, max, ret, ret_size);
}

int proc_read_fd(int file, size_t max, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = file;
	_cleanup_free_ char *buf = NULL;
	size_t size = 0, room = 0;
	ssize_t n;

	do {
		char *p;

		if (room > max)
			return -EFBIG;
		room = room ? 2 * room : 4096;
		p = realloc(buf, room + 1);
		if (!p)
			return -ENOMEM;
		buf = p;
		n = read_until(fd, buf + size, room - size);
		if (n < 0)
			return (int)n;
		size += (size_t)n;
	} while (size == room);
	if (size > max)
		return -EFBIG;
	buf[size] = 0;
	*ret = TAKE_PTR(buf);
	if (ret_size)
		*ret_size = size;
	return 0;
}

const char *proc_field(const char *status, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = status; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, n) == 0 && line[n] == ':')
			return line + n + 1 + strspn(line + n + 1, " \t");
	}
	return NULL;
}

pid_t proc_last_pid(const char *status, const char *key)
{
	const char *p = proc_field(status, key);
	long v = 0;

	while (p && *p && *p != '\n') {
		char *end;

		v = strtol(p, &end, 10);
		if (end == p)
			return 0;
		p = end + strspn(end, " \t");
	}
	return v > 0 && v <= INT32_MAX ? (pid_t)v : 0;
}

/* "pid (comm) state …": comm may contain anything, even ") R ". Field numbers are those of
 * proc(5). */
int proc_stat_parse(const char *text, struct proc_stat *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')'), *p;
	struct proc_stat st = {0};
	size_t n;

	if (!open || !close || close < open || close[1] != ' ' || !close[2])
		return -EINVAL;
	n = (size_t)(close - open - 1);
	memcpy(st.comm, open + 1, n < sizeof(st.comm) - 1 ? n : sizeof(st.comm) - 1);
	st.state = close[2];
	p = close + 3;
	for (int field = 4; field <= 22; field++) {
		char *end;
		unsigned long long v = strtoull(p, &end, 10);

		if (end == p)
			return -EINVAL;
		p = end;
		if (field == 9)
			st.exiting = v & PF_EXITING;
		else if (field == 14)
			st.utime = v;
		else if (field == 15)
			st.stime = v;
		else if (field == 22)
			st.starttime = v;
	}
	*ret = st;
	return 0;
}

int proc_stat_read(int dirfd, const char *path, struct proc_stat *ret)
{
	_cleanup_free_ char *text = NULL;
	int err = proc_read(dirfd, path, STAT_MAX, &text, NULL);

	return text ? proc_stat_parse(text, ret) : err;
}

bool proc_runs(const char *path)
{
	struct proc_stat st = {0};

	return proc_stat_read(AT_FDCWD, path, &st) == 0 && st.state == 'R';
}

int proc_rss(pid_t pid, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long pages;
	char path[32], *end;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	err = proc_read(AT_FDCWD, path, STAT_MAX, &text, NULL);
	if (err < 0)
		return err;
	strtoull(text, &end, 10); /* its size */
	pages = strtoull(end, &end, 10);
	*ret = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}
