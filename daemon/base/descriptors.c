// SPDX-License-Identifier: BSD-2-Clause
/* Closing all but some descriptors, and passing some: see descriptors.h. */
#include "base/descriptors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int close_from(unsigned int first, unsigned int last)
{
	return syscall(SYS_close_range, first, last, 0) < 0 ? -errno : 0;
}

int descriptors_close_others(unsigned int from, const int *keep, size_t n)
{
	int sorted[DESCRIPTORS_KEPT], r = 0;

	if (n > DESCRIPTORS_KEPT)
		return -E2BIG;
	memcpy(sorted, keep, n * sizeof(*keep));
	qsort(sorted, n, sizeof(*sorted), by_number);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (sorted[i] < 0 || (unsigned int)sorted[i] < from)
			continue;
		if ((unsigned int)sorted[i] > from)
			r = close_from(from, (unsigned int)sorted[i] - 1);
		from = (unsigned int)sorted[i] + 1;
	}
	return r == 0 ? close_from(from, ~0u) : r;
}

union control {
	char bytes[CMSG_SPACE(DESCRIPTORS_SENT * sizeof(int))];
	struct cmsghdr align;
};

int descriptors_send(int sock, const void *data, size_t size, const int *fds, size_t n)
{
	union control control = {{0}};
	struct iovec iov = {(void *)data, size};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = CMSG_SPACE(n * sizeof(*fds))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	if (n > DESCRIPTORS_SENT)
		return -E2BIG;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(*fds));
	memcpy(CMSG_DATA(c), fds, n * sizeof(*fds));
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -errno;
}

int descriptors_receive(int sock, void *data, size_t size, int fds[DESCRIPTORS_SENT])
{
	union control control;
	struct iovec iov = {data, size};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	size_t n;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != (ssize_t)size)
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -1;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(*fds);
	if (n > DESCRIPTORS_SENT)
		return -1;
	memcpy(fds, CMSG_DATA(c), n * sizeof(*fds));
	return (int)n;
}
