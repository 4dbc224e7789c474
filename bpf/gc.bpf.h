/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collections of the cyclic garbage collector: two hits for each one. Which frame set it off is read
 * from the thread's state, since no register is known to hold it; that costs as much as a hit, which
 * is little beside a collection.
 */
#ifndef PYPROF_GC_BPF_H
#define PYPROF_GC_BPF_H

#include "hit.bpf.h"

extern const volatile __u32 collections; /* 1: the sites of collections are attached to */

static __always_inline __u32 gc_generation(const struct hit *h)
{
	__u32 generation = (__u32)h->ptr;

	if (PYP_COOKIE_DISP(h->cookie) == PYP_GC_NO_GENERATION || generation >= PYP_GC_GENERATIONS)
		return PYP_GC_UNKNOWN;
	return generation;
}

/* The innermost Python frame of the thread that runs; 0: none, or it cannot be read. */
__u64 gc_frame(__u32 tid, __u64 sp);

#endif
