// SPDX-License-Identifier: BSD-2-Clause
/*
 * Input about threads other than events: stacks and names from /proc and from the target's memory,
 * threads that have ended, and the watcher of stack changes.
 */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/profile_priv.h"

void profile_end_thread(struct profile *p, struct thread *th, uint64_t ts)
{
	if (th->live)
		timing_charge(&p->rb.tree, th, ts);
	profile_wait_stop(p, th, ts);
	gil_forget(&p->gils, &p->rb.tree, th, ts);
	if (p->watch)
		watch_end_thread(p->watch, th, ts);
	rebuild_drop_all(&p->rb, th, true);
	thread_drop_chain(th);
	codes_thread_exit(&p->codes, th->tid);
	if (ts > th->end_ns)
		th->end_ns = ts;
	wholes_drop(&p->wholes, &th->whole);
	threads_retire(&p->threads, th);
	if (p->last == th)
		p->last = NULL;
	profile_add_ended(p, th);
}

static void push_initial(struct profile *p, struct thread *th, const struct initial_stack *initial)
{
	_cleanup_free_ struct chain_frame *frames = NULL;
	size_t n = initial->n < PYP_CHAIN_MAX_DEPTH ? initial->n : PYP_CHAIN_MAX_DEPTH;

	if (!n)
		return;
	frames = calloc(n, sizeof(*frames));
	if (!frames)
		return;
	for (size_t i = 0; i < n; i++)
		frames[i] = (struct chain_frame){
			.frame = initial->frames[i].frame,
			.func = codes_func(&p->codes, initial->frames[i].code),
		};
	rebuild_chain(&p->rb, th, frames, (uint32_t)n, n < initial->n);
}

struct thread *profile_initial_thread(struct profile *p, uint64_t begin,
				      const struct initial_stack *initial)
{
	struct thread *th = threads_get(&p->threads, initial->tid, begin);

	if (th && initial->name)
		thread_set_name(th, initial->name);
	return th;
}

void profile_add_initial(struct profile *p, uint64_t ts, const struct initial_stack *initial)
{
	const uint64_t begin = p->window.begin_ts ? p->window.begin_ts : ts;
	struct thread *th;

	if (!p->tracing)
		return;
	if (!profile_is_timed(p)) {
		profile_wait_initial(p, initial->asked_ns, initial);
		if (!p->windows)
			return;
	}
	th = profile_initial_thread(p, begin, initial);
	if (!th || th->live)
		return;
	th->live = true;
	if (!profile_is_timed(p)) {
		timing_first_pass(th, begin, initial->running);
		th->initial_ts = ts;
	} else {
		const struct thread_wait wait = th->wait;

		timing_initial(th, begin, ts, initial->running, initial->runtime);
		if (th->waiting.given && !initial->running)
			th->wait = wait;
	}
	push_initial(p, th, initial);
	if (p->watch)
		watch_chain(p->watch, th, ts, false);
}

void profile_update_runtime(struct profile *p, uint32_t tid, uint64_t ts, uint64_t runtime)
{
	struct thread *th = profile_live_thread(p, tid);

	if (th)
		timing_os(&p->rb.tree, th, ts, runtime);
}

void profile_set_thread_name(struct profile *p, uint32_t tid, const char *name)
{
	struct thread *th = threads_find(&p->threads, tid);

	if (!th)
		return;
	thread_set_name(th, name);
	th->missing = false;
}

void profile_thread_gone(struct profile *p, uint32_t tid, uint64_t written, uint64_t read)
{
	struct thread *th = threads_find(&p->threads, tid);

	if (!th)
		return;
	if (!th->missing) {
		th->missing = true;
		th->missing_at = written;
	} else if (read >= th->missing_at) {
		/* The time since its last event is unknown. */
		profile_end_thread(p, th, th->last_ts);
	}
}

void profile_foreach_thread(const struct profile *p, profile_thread_fn fn, void *ctx)
{
	/* Backwards, because fn may end a thread, which moves the last one to its index. */
	for (uint32_t i = p->threads.n; i-- > 0;) {
		const struct thread *th = i < p->threads.n ? p->threads.v[i] : NULL;

		if (th && th->alive)
			fn(ctx, th->tid);
	}
}

/* Watching --------------------------------------------------------------------------------- */

int profile_watch(struct profile *p, const struct watcher *w)
{
	if (p->watch)
		return -EBUSY;
	p->watch = watch_new(w);
	if (!p->watch)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->threads.n; i++)
		if (p->threads.v[i]->live)
			watch_begin_thread(p->watch, p->threads.v[i]);
	return 0;
}

struct watch_counts profile_unwatch(struct profile *p, uint64_t ts)
{
	struct watch_counts counts = profile_watch_counts(p);

	for (uint32_t i = 0; p->watch && i < p->threads.n; i++)
		watch_end_thread(p->watch, p->threads.v[i], ts);
	watch_free(TAKE_PTR(p->watch));
	return counts;
}

struct watch_counts profile_watch_counts(const struct profile *p)
{
	return p->watch ? watch_counts(p->watch) : (struct watch_counts){0};
}
