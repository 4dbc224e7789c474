/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Code objects: the first time one is seen its names are sent, while its frame is live and so its
 * strings are valid. Order in the ring: STRING records, then CODE, then whatever made us look.
 */
#ifndef PYPROF_CODE_BPF_H
#define PYPROF_CODE_BPF_H

#include "maps.bpf.h"

/* First sight. Returns CORE_CODE_* bits, or -1 if it could not be sent (not marked as seen). */
int code_announce(__u64 code, __u32 tid);

/* CORE_CODE_* bits; a code object not seen before is announced (-1: it could not be). */
int code_lookup(__u64 code, __u32 tid);

/* Returns whether the code object had been seen. */
static __always_inline int code_forget(__u64 code)
{
	__u32 slot = core_code_slot(code);
	int cached = core_code_hit(code_cache[slot], code);

	if (cached)
		code_cache[slot] = 0;
	return bpf_map_delete_elem(&codes, &code) == 0 || cached;
}

#endif
