/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read-only access to a target's memory: the live process (process_vm_readv, or an open
 * /proc/PID/mem), or a test's buffer. Readers of Python structures need nothing but a struct
 * memory.
 */
#ifndef PYPROF_TARGET_MEMORY_H
#define PYPROF_TARGET_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory {
	/* Read exactly n bytes at addr. Returns 0, -EFAULT, -ESRCH or -EPERM. */
	int (*read)(const struct memory *mem, uint64_t addr, void *out, size_t n);
	pid_t pid;	      /* live process */
	int fd;		      /* open file, borrowed */
	const uint8_t *bytes; /* buffer, borrowed */
	uint64_t base;	      /* address of bytes[0] */
	size_t size;
};

struct memory memory_live(pid_t pid);
/* fd: an open /proc/PID/mem, borrowed. It shows the memory of the program that ran when it was
 * opened; reads fail with -ESRCH once that is gone. */
struct memory memory_fd(int fd);
struct memory memory_buffer(const void *bytes, size_t size, uint64_t base);

int memory_read(const struct memory *mem, uint64_t addr, void *out, size_t n);
int memory_read_u64(const struct memory *mem, uint64_t addr, uint64_t *ret);
int memory_read_u32(const struct memory *mem, uint64_t addr, uint32_t *ret);

#endif
