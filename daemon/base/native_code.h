/* SPDX-License-Identifier: BSD-2-Clause */
/* Machine code that is mapped into a process. */
#ifndef PYPROF_BASE_NATIVE_CODE_H
#define PYPROF_BASE_NATIVE_CODE_H

#include <stdint.h>

#define NATIVE_FILE_MAX 64

struct native_code {
	uint64_t start, end;	    /* address range of this mapping */
	char file[NATIVE_FILE_MAX]; /* base name of the mapped file; "": anonymous memory, such
				     * as a JIT's */
};

#endif
