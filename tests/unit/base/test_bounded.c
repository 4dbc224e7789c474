// SPDX-License-Identifier: BSD-2-Clause
/*
 * base/bounded.c: text within the limit is written; from the first text that exceeds it on, nothing
 * is.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bounded.h"
#include "harness/test.h"

static off_t size_of(int fd)
{
	struct stat st;

	cr_assert(fstat(fd, &st) == 0);
	return st.st_size;
}

Test(bounded, writes_what_fits)
{
	int fd = memfd_create("bounded", MFD_CLOEXEC);
	struct bounded_room room = {.left = 10};
	FILE *f = bounded_open(fd, &room);
	char got[10];

	cr_assert(f);
	cr_assert(fputs("0123456789", f) >= 0);
	cr_assert(fclose(f) == 0);
	cr_assert(!room.exceeded && room.left == 0);
	cr_assert(pread(fd, got, sizeof(got), 0) == 10);
	cr_assert_arr_eq(got, "0123456789", 10);
	close(fd);
}

Test(bounded, nothing_follows_what_does_not_fit)
{
	int fd = memfd_create("bounded", MFD_CLOEXEC);
	struct bounded_room room = {.left = 10};
	FILE *f = bounded_open(fd, &room);

	cr_assert(f);
	cr_assert(fputs("12345", f) >= 0 && fflush(f) == 0);
	cr_assert(fputs("678901", f) >= 0 && fflush(f) != 0 && errno == EFBIG);
	cr_assert(room.exceeded);
	clearerr(f);
	(void)fputs("x", f);
	cr_assert(fclose(f) != 0);
	cr_assert(size_of(fd) == 5);
	close(fd);
}
