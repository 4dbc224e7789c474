// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Collections: see gc.bpf.h. A global function, so the verifier checks it only once. */
#include "gc.bpf.h"

#include "tstate.bpf.h"

const volatile __u32 collections = 0;

__u64 gc_frame(__u32 tid, __u64 sp)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	__u64 frame = current_frame(tid, ARCH_PTHREAD_SELF(task));

	return frame ? caller_resolve(frame, tid, sp) : 0;
}
