// SPDX-License-Identifier: BSD-2-Clause
/* target/memory: live and from a buffer. */
#include "target/memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/test.h"

Test(memory, buffer)
{
	const uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct memory mem = memory_buffer(bytes, sizeof(bytes), 0x1000);
	uint8_t out[16];
	uint64_t v64 = 7;
	uint32_t v32;

	assert_ok(memory_read(&mem, 0x1000, out, 16));
	assert_bytes_eq(out, bytes, 16);
	assert_ok(memory_read_u32(&mem, 0x1002, &v32));
	cr_assert(v32 == 0x06050403);
	assert_err(memory_read_u64(&mem, 0x1009, &v64), -EFAULT);
	cr_assert(v64 == 7, "untouched on failure");
	assert_err(memory_read(&mem, 0xfff, out, 1), -EFAULT);
	assert_err(memory_read(&mem, 0x1010, out, 1), -EFAULT);
	assert_ok(memory_read(&mem, 0x1010, out, 0));
	assert_err(memory_read(&mem, UINT64_MAX, out, 2), -EFAULT);
	assert_err(memory_read(&mem, 0x1000, out, SIZE_MAX), -EFAULT);
}

Test(memory, live)
{
	struct memory mem = memory_live(getpid()), gone = memory_live(0x7ffffffe);
	char text[] = "hello", out[6];
	uint64_t v;
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(p != MAP_FAILED && munmap(p + 4096, 4096) == 0);
	assert_ok(memory_read(&mem, (uint64_t)(uintptr_t)text, out, 6));
	cr_assert_str_eq(out, "hello");
	assert_ok(memory_read_u64(&mem, (uint64_t)(uintptr_t)p + 4088, &v));
	assert_err(memory_read_u64(&mem, (uint64_t)(uintptr_t)p + 4092, &v), -EFAULT);
	assert_err(memory_read_u64(&mem, 0, &v), -EFAULT);
	assert_err(memory_read_u64(&mem, UINT64_MAX - 7, &v), -EFAULT);
	assert_err(memory_read_u64(&gone, (uint64_t)(uintptr_t)p, &v), -ESRCH);
	munmap(p, 4096);
}
