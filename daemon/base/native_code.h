/* SPDX-License-Identifier: BSD-2-Clause */
/* Machine code that a process has mapped. */
#ifndef PYPROF_BASE_NATIVE_CODE_H
#define PYPROF_BASE_NATIVE_CODE_H

#include <stdint.h>

#define NATIVE_FILE_MAX 64

struct native_code {
	uint64_t start, end;	    /* the addresses for which this is the answer */
	char file[NATIVE_FILE_MAX]; /* its name without directories; "": no file's, as of a JIT */
};

#endif
