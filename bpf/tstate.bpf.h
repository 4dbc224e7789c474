/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of the current thread and its innermost frame, for programs whose context does not hold
 * them in a register.
 *
 * The thread state is the one in CPython's list whose thread_id, a pthread_t, equals the thread's
 * own (ARCH_PTHREAD_SELF). A thread may have states in several interpreters. The list starts with
 * the newest, and the first state with a frame is the running one.
 */
#ifndef PYPROF_TSTATE_BPF_H
#define PYPROF_TSTATE_BPF_H

#include "user.bpf.h"

#define NO_FIELD 0xffff

static __always_inline __u64 tstate_frame(__u64 tstate)
{
	__u64 at = 0;

	if (sampling.ts_cframe == NO_FIELD) {
		user_read(&at, sizeof(at), tstate + sampling.ts_frame);
		return at;
	}
	if (user_read(&at, sizeof(at), tstate + sampling.ts_cframe) || !at ||
	    user_read(&at, sizeof(at), at + sampling.cframe_current))
		return 0;
	return at;
}

static __always_inline int tstate_is(__u64 tstate, __u64 self)
{
	__u64 id = 0;

	return !user_read(&id, sizeof(id), tstate + sampling.ts_thread_id) && id == self;
}

struct search {
	__u64 interp;
	__u64 tstate; /* the next state to test; 0: take the next interpreter's first */
	__u64 self;
	__u64 found, frame;
};

static long search_step(__u64 index, struct search *s)
{
	if (!s->tstate) {
		if (!s->interp ||
		    user_read(&s->tstate, sizeof(s->tstate), s->interp + sampling.interp_threads) ||
		    user_read(&s->interp, sizeof(s->interp), s->interp + sampling.interp_next))
			return 1;
		return 0;
	}
	if (tstate_is(s->tstate, s->self)) {
		s->found = s->tstate;
		s->frame = tstate_frame(s->tstate);
		if (s->frame)
			return 1;
	}
	return user_read(&s->tstate, sizeof(s->tstate), s->tstate + sampling.ts_next) ? 1 : 0;
}

#define SEARCH_MAX 8192

/*
 * Returns the innermost frame of the current thread, 0 if it has none. tid: the thread; self: its
 * pthread_t.
 */
static __always_inline __u64 current_frame(__u32 tid, __u64 self)
{
	struct search s = {.self = self};
	__u64 *known = bpf_map_lookup_elem(&tstates, &tid), next = 0;

	if (known && tstate_is(*known, self))
		return tstate_frame(*known);
	if (user_read(&s.interp, sizeof(s.interp), sampling_at.interp_head) || !s.interp ||
	    user_read(&s.tstate, sizeof(s.tstate), s.interp + sampling.interp_threads))
		return 0;
	user_read(&next, sizeof(next), s.interp + sampling.interp_next);
	s.interp = next;
	/*
	 * Before Linux 6.7, the verifier follows one iteration only, and removes what that does not
	 * reach: its start must not be a constant.
	 */
	bpf_loop(SEARCH_MAX, search_step, &s, 0);
	/*
	 * With several interpreters the running state can change without an event, so it is not
	 * cached.
	 */
	if (s.found && !next)
		bpf_map_update_elem(&tstates, &tid, &s.found, BPF_ANY);
	return s.frame;
}

#endif
