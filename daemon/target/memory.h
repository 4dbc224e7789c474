/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a target's memory, behind a seam: the live process (process_vm_readv, or its open
 * /proc/PID/mem), or a buffer laid out by a test. Never writes. Readers of Python structures take a struct memory and nothing else.
 */
#ifndef PYPROF_TARGET_MEMORY_H
#define PYPROF_TARGET_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory {
	/* Read exactly n bytes at addr: 0, or -EFAULT / -ESRCH / -EPERM. */
	int (*read)(const struct memory *mem, uint64_t addr, void *out, size_t n);
	pid_t pid;	      /* live */
	int fd;		      /* open file: borrowed */
	const uint8_t *bytes; /* buffer: borrowed */
	uint64_t base;	      /* address of bytes[0] */
	size_t size;
};

struct memory memory_live(pid_t pid);
/* fd: an open /proc/PID/mem, which shows the memory of the program that ran when it was opened.
 * -ESRCH: that has gone. */
struct memory memory_fd(int fd);
struct memory memory_buffer(const void *bytes, size_t size, uint64_t base);

int memory_read(const struct memory *mem, uint64_t addr, void *out, size_t n);
int memory_read_u64(const struct memory *mem, uint64_t addr, uint64_t *ret);
int memory_read_u32(const struct memory *mem, uint64_t addr, uint32_t *ret);

#endif
