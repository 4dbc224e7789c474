// SPDX-License-Identifier: BSD-2-Clause
/*
 * The opener: opens files of one process on behalf of the inspector. It reads none of them; if
 * /proc/PID/mem cannot be opened, it copies memory to the inspector without interpreting it. As it
 * keeps the capabilities for opening, it accepts only numbers from the inspector.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inspect/helper.h"

struct opener {
	const struct inspect_job *job;
	const struct target *target; /* NULL: the file at job->path */
	int dirfd;		     /* /proc/TID */
	char bytes[OPENER_READ_MAX];
};

static int open_part(const struct opener *o, const struct opener_msg *m)
{
	const struct target *t = o->target;
	int fd;

	if (m->part == OPENER_FILE && !t) {
		fd = open(o->job->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		return fd < 0 ? -errno : fd;
	}
	if (!t || m->part >= TARGET_PARTS)
		return -EINVAL;
	fd = target_open_part_at(o->dirfd, (enum target_part)m->part, m->start, m->end);
	/* The directory belongs to the right process only while the target is alive. */
	if (fd >= 0 && !target_alive(t)) {
		(void)close(fd);
		return -ESRCH;
	}
	return fd;
}

static int read_memory(struct opener *o, const struct opener_msg *m)
{
	const struct target *t = o->target;
	struct iovec local = {o->bytes, m->n}, remote = {(void *)(uintptr_t)m->start, m->n};

	if (!t || !m->n || m->n > sizeof(o->bytes))
		return -EINVAL;
	if (process_vm_readv(t->tid, &local, 1, &remote, 1, 0) != (ssize_t)m->n)
		return errno == ESRCH || errno == EPERM ? -errno : -EFAULT;
	return target_alive(t) ? 0 : -ESRCH;
}

static bool answer(int ask, int32_t err, int fd, void *bytes, size_t n)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov[2] = {{&err, sizeof(err)}, {bytes, n}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n ? 2 : 1};

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(ask, &msg, MSG_NOSIGNAL) >= 0;
}

static bool serve(struct opener *o, int ask)
{
	struct opener_msg m;
	struct iovec iov = {&m, sizeof(m)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	bool sent;
	int r;

	if (recvmsg(ask, &msg, 0) != sizeof(m) || msg.msg_flags & MSG_TRUNC)
		return false;
	if (m.part == OPENER_READ) {
		r = read_memory(o, &m);
		return answer(ask, r, -1, o->bytes, r == 0 ? m.n : 0);
	}
	r = open_part(o, &m);
	sent = answer(ask, r < 0 ? r : 0, r, NULL, 0);
	if (r >= 0)
		(void)close(r);
	return sent;
}

void opener_run(struct helper_side *side)
{
	static struct opener o = {.dirfd = -1};
	struct inspect_job *job = side->ctx;
	char path[64];

	o.job = job;
	if (job->has_target) {
		job->target.pidfd = side->fds[INSPECT_PIDFD];
		o.target = &job->target;
		snprintf(path, sizeof(path), "/proc/%d", job->target.tid);
		o.dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (confine_opener(side->parent) == 0)
		while (serve(&o, side->fds[INSPECT_ASK]))
			;
}
