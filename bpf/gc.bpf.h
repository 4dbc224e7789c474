/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collections of the cyclic garbage collector: two hits each. No register is known to hold the
 * frame that triggered the collection, so the program reads it from the thread's state. That costs
 * as much as a hit, which is little compared with a collection.
 */
#ifndef PYPROF_GC_BPF_H
#define PYPROF_GC_BPF_H

#include "hit.bpf.h"

extern const volatile __u32 collections; /* 1: the sites of collections are attached */

static __always_inline __u32 gc_generation(const struct hit *h)
{
	__u32 generation = (__u32)h->ptr;

	if (PYP_COOKIE_DISP(h->cookie) == PYP_GC_NO_GENERATION || generation >= PYP_GC_GENERATIONS)
		return PYP_GC_UNKNOWN;
	return generation;
}

/*
 * Returns the innermost Python frame of the current thread; 0 if there is none or it cannot be
 * read.
 */
__u64 gc_frame(__u32 tid, __u64 sp);

#endif
