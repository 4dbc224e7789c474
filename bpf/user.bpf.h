/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads of the target's memory. */
#ifndef PYPROF_USER_BPF_H
#define PYPROF_USER_BPF_H

#include "maps.bpf.h"

static __always_inline long user_read(void *dst, __u32 size, __u64 addr)
{
	return bpf_probe_read_user(dst, size, (const void *)addr);
}

#endif
