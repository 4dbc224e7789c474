/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions written in C of which no more is known than the address of an instruction in them: named
 * by the file that is mapped there, "<native code in libz.so.1>", which is asked for once per range of
 * addresses. Bounded in ranges and in questions; what belongs to no file, and what comes after that,
 * is "<native code>". (The files' dynamic symbols would seldom say more: they have the functions that
 * an extension exports, its PyInit, and not the static ones that Python calls.)
 *
 * What is mapped where is taken to stay: a library that another one takes the place of keeps its names.
 */
#ifndef PYPROF_STACK_NATIVES_H
#define PYPROF_STACK_NATIVES_H

#include <stdint.h>

#include "base/native_code.h"
#include "stats/func.h"

#define NATIVES_MAX	 256u /* ranges */
#define NATIVES_FAILURES 16u  /* questions without an answer, after which none is asked */

/* Fills *ret for an address; returns 0 or a negative errno. May take milliseconds. */
typedef int (*natives_find_fn)(void *ctx, uint64_t address, struct native_code *ret);

struct native_range {
	uint64_t start, end;
	uint32_t func;
};

/* Zeroed: there is nobody to ask. */
struct natives {
	natives_find_fn find;
	void *ctx;		/* of find */
	struct native_range *v; /* ascending, apart */
	uint32_t n, cap, failures;
};

void natives_deinit(struct natives *n);
/* The addresses mean nothing any more. */
void natives_forget(struct natives *n);

/* The row of the code at an address, made in funcs if there is none. */
uint32_t natives_func(struct natives *n, struct funcs *funcs, uint64_t address);

#endif
