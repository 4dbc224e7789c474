// SPDX-License-Identifier: BSD-2-Clause
/* Closing all but some descriptors: see descriptors.h. */
#include "base/descriptors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
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
