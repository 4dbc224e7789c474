/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Code objects. The program sends the names of a code object at its first event, while the frame is
 * live and its strings are therefore valid. Order in the ring: STRING records, CODE, then the
 * record of the event that caused the lookup.
 */
#ifndef PYPROF_CODE_BPF_H
#define PYPROF_CODE_BPF_H

#include "user.bpf.h"

/*
 * Send the names of a code object that has not been announced. code: its address; tid: the current
 * thread. Returns CORE_CODE_* bits, or -1 if the ring was full; the code object then stays
 * unannounced.
 */
int code_announce(__u64 code, __u32 tid);

/*
 * Returns CORE_CODE_* bits. Announces a code object that has not been announced; -1 if that failed.
 */
int code_lookup(__u64 code, __u32 tid);

/*
 * Wait until a code object and its names can be read. To be called by programs of probes before
 * code_announce, which samples call as well. Returns 0.
 */
int code_wait(__u64 code);

/*
 * Send the names of a code object once more, which is about to be freed. To be called by programs of
 * probes if the value in `codes` has CORE_CODE_UNNAMED: pages that were absent when it was announced
 * have usually been needed by the target itself since then. The result does not matter.
 */
int code_send_late(__u64 code, __u32 tid);

/* Drop what is known about a code object. Returns 1 if it had been announced, otherwise 0. */
static __always_inline int code_forget(__u64 code)
{
	__u32 slot = core_code_slot(code);
	int cached = core_code_hit(code_cache[slot], code);

	if (cached)
		code_cache[slot] = 0;
	return bpf_map_delete_elem(&codes, &code) == 0 || cached;
}

#endif
