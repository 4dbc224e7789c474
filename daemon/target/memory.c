// SPDX-License-Identifier: BSD-2-Clause
/* Reading a target's memory, or a buffer: see memory.h. */
#include "target/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int read_live(const struct memory *mem, uint64_t addr, void *out, size_t n)
{
	size_t done = 0;

	/* A read that crosses into an unmapped page is short. */
	while (done < n) {
		struct iovec local = {(char *)out + done, n - done};
		struct iovec remote = {(void *)(uintptr_t)(addr + done), n - done};
		ssize_t got = process_vm_readv(mem->pid, &local, 1, &remote, 1, 0);

		if (got < 0)
			return errno == ESRCH || errno == EPERM ? -errno : -EFAULT;
		if (got == 0)
			return -EFAULT;
		done += (size_t)got;
	}
	return 0;
}

static int read_fd(const struct memory *mem, uint64_t addr, void *out, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(mem->fd, (char *)out + done, n - done, (off_t)(addr + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -EFAULT;
		if (got == 0)
			return -ESRCH;
		done += (size_t)got;
	}
	return 0;
}

static int read_buffer(const struct memory *mem, uint64_t addr, void *out, size_t n)
{
	if (addr < mem->base || addr - mem->base > mem->size || n > mem->size - (addr - mem->base))
		return -EFAULT;
	if (n)
		memcpy(out, mem->bytes + (addr - mem->base), n);
	return 0;
}

struct memory memory_live(pid_t pid)
{
	return (struct memory){.read = read_live, .pid = pid};
}

struct memory memory_fd(int fd)
{
	return (struct memory){.read = read_fd, .fd = fd};
}

struct memory memory_buffer(const void *bytes, size_t size, uint64_t base)
{
	return (struct memory){.read = read_buffer, .bytes = bytes, .base = base, .size = size};
}

int memory_read(const struct memory *mem, uint64_t addr, void *out, size_t n)
{
	if (addr > UINT64_MAX - n)
		return -EFAULT;
	return mem->read(mem, addr, out, n);
}

int memory_read_u64(const struct memory *mem, uint64_t addr, uint64_t *ret)
{
	uint64_t v;
	int err = memory_read(mem, addr, &v, sizeof(v));

	if (!err)
		*ret = v;
	return err;
}

int memory_read_u32(const struct memory *mem, uint64_t addr, uint32_t *ret)
{
	uint32_t v;
	int err = memory_read(mem, addr, &v, sizeof(v));

	if (!err)
		*ret = v;
	return err;
}
