// SPDX-License-Identifier: BSD-2-Clause
/* Reports of the set of targets: snapshots and states. See session.h. */
#include "session/session.h"

#include <errno.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "pyprof/version.h"
#include "session/set.h"
#include "snapshot/since.h"
#include "target/proc.h"

/* Returns whether the probe cost of the target is still being measured (just attached). */
static bool lacks_cost(const struct tracee *t)
{
	const bool known = t->cost.known && t->cost.latency_ps && !t->cost_of_other;

	return t->calibration && !known && !calibration_wait(t->calibration, 0);
}

static bool is_current(const struct tracee *t, uint64_t since_ns)
{
	return tracee_current_ns(t) >= since_ns && !lacks_cost(t) && !tracee_settles(t);
}

static void snapshot_provenance(const struct sessions *ss, struct snapshot *s)
{
	struct utsname u;

	s->program = "pyprofd " PYPROF_VERSION;
	s->taken_unix_ns = clock_unix_ns();
	s->clock = ss->opts.clock;
	if (uname(&u) < 0)
		return;
	s->host = snapshot_str(s, u.nodename);
	s->kernel = snapshot_str(s, u.release);
}

static int snapshot_targets(struct sessions *ss, pid_t pid, struct snapshot *s)
{
	int r = 0;

	for (size_t i = 0; i < ss->n && r == 0; i++) {
		if (pid && ss->v[i]->tracee->target->pid != pid)
			continue;
		r = tracee_snapshot(ss->v[i]->tracee, s, &s->targets[s->ntargets]);
		s->ntargets++;
	}
	return r;
}

static bool is_meant(const struct session *s, pid_t pid)
{
	return !pid || s->tracee->target->pid == pid;
}

bool sessions_stopping(const struct sessions *ss, pid_t pid)
{
	for (size_t i = 0; i < ss->n; i++)
		if (is_meant(ss->v[i], pid) && ss->v[i]->tracee->state == SESSION_STOPPING)
			return true;
	return false;
}

bool sessions_current(const struct sessions *ss, pid_t pid, uint64_t since_ns)
{
	for (size_t i = 0; i < ss->n; i++)
		if (is_meant(ss->v[i], pid) && !is_current(ss->v[i]->tracee, since_ns))
			return false;
	return true;
}

bool sessions_catch_up(struct sessions *ss, pid_t pid, uint64_t since_ns, uint64_t until_ns)
{
	for (size_t i = 0; i < ss->n && tracee_now() < until_ns; i++) {
		struct tracee *t = ss->v[i]->tracee;

		if (!is_meant(ss->v[i], pid))
			continue;
		if (!tracee_finish(t, until_ns))
			continue;
		tracee_drain(t, until_ns);
		/* this may only have finished a drain that was begun before since_ns */
		if (tracee_current_ns(t) < since_ns)
			tracee_drain(t, until_ns);
	}
	sessions_after_drain(ss);
	if (sessions_current(ss, pid, since_ns))
		return true;
	sessions_arm(ss, 0);
	return false;
}

int sessions_snapshot(struct sessions *ss, pid_t pid, struct snapshot **ret, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_new();
	int r;

	if (pid && !sessions_find(ss, pid))
		return sessions_not_attached(pid, diag);
	if (s)
		s->targets = snapshot_alloc(s, ss->n ? ss->n : 1, sizeof(*s->targets));
	if (!s || !s->targets)
		return diag_errno(diag, ENOMEM, "cannot take a snapshot");
	snapshot_provenance(ss, s);
	r = snapshot_targets(ss, pid, s);
	sessions_after_drain(ss);
	if (r == 0 && !pid)
		r = follow_add_folded(ss, &s);
	if (r < 0)
		return diag_errno(diag, -r, "cannot take a snapshot");
	*ret = TAKE_PTR(s);
	return 0;
}

/* ---- cuts ---- */

/* Samples are not counted while they are in the ring, so nothing is lost by clearing. */
static bool is_cleared_by_cut(const struct tracee *t)
{
	return t->opts.mode.mode == MODE_SAMPLE;
}

static bool has_news(const struct tracee *t)
{
	const struct profile_counts c = profile_counts(t->profile);

	return is_cleared_by_cut(t) ? profile_samples(t->profile) > t->samples_base
				    : c.events || c.calls;
}

static int snapshot_of(struct sessions *ss, struct tracee *t, struct snapshot **ret)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_new();
	int r;

	if (s)
		s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	if (!s || !s->targets)
		return -ENOMEM;
	snapshot_provenance(ss, s);
	s->ntargets = 1;
	r = is_cleared_by_cut(t) ? tracee_cut(t, s, s->targets) : tracee_snapshot(t, s, s->targets);
	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}

/* Returns the figures of s since *last, and keeps s as *last. */
static int subtract_last(struct snapshot **last, struct snapshot **s)
{
	struct snapshot *copy = snapshot_copy(*s);
	int r = 0;

	if (!copy)
		return -ENOMEM;
	if (*last)
		r = snapshot_subtract(*s, *last);
	snapshot_free(*last);
	*last = copy;
	return r;
}

int sessions_cut(struct sessions *ss, pid_t pid, struct snapshot **last, struct snapshot **ret,
		 struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct session *session = sessions_find(ss, pid);
	int r = 0;

	if (!session)
		return sessions_not_attached(pid, diag);
	*ret = NULL;
	tracee_catch_up(session->tracee);
	if (has_news(session->tracee)) {
		r = snapshot_of(ss, session->tracee, &s);
		if (r == 0 && !is_cleared_by_cut(session->tracee))
			r = subtract_last(last, &s);
	}
	sessions_after_drain(ss);
	if (r < 0)
		return diag_errno(diag, -r, "cannot take a snapshot");
	*ret = TAKE_PTR(s);
	return 0;
}

bool sessions_over(const struct sessions *ss, pid_t pid)
{
	const struct session *s = sessions_find(ss, pid);

	return s && s->tracee->state == SESSION_ENDED && !follow_goes_on(s);
}

/* Figures of the process that the kernel has, whether it is traced or not */
static void read_process(struct session_status *st)
{
	if (st->state == SESSION_ENDED)
		return;
	(void)clock_process_cpu_ns(st->pid, &st->cpu_ns);
	(void)proc_rss(st->pid, &st->rss);
}

size_t sessions_count(const struct sessions *ss)
{
	return ss->n;
}

void sessions_status(struct sessions *ss, size_t i, struct session_status *ret)
{
	tracee_status(ss->v[i]->tracee, ret);
	read_process(ret);
	ret->over = sessions_over(ss, ret->pid);
}

void sessions_overhead(const struct sessions *ss, uint64_t *ret_overhead_ns,
		       uint64_t *ret_own_cpu_ns)
{
	*ret_overhead_ns = ss->folded ? ss->folded->targets[0].overhead_ns : 0;
	*ret_own_cpu_ns = ss->folded ? ss->folded->targets[0].own_cpu_ns : 0;
	for (size_t i = 0; i < ss->n; i++) {
		uint64_t overhead, own;

		tracee_overhead(ss->v[i]->tracee, &overhead, &own);
		*ret_overhead_ns += overhead;
		*ret_own_cpu_ns += own;
	}
}

int sessions_status_pid(struct sessions *ss, pid_t pid, struct session_status *ret,
			struct diag *diag)
{
	struct session *s = sessions_find(ss, pid);

	if (!s)
		return sessions_not_attached(pid, diag);
	tracee_status(s->tracee, ret);
	read_process(ret);
	ret->over = sessions_over(ss, pid);
	return 0;
}

const char *session_state_name(enum session_state s)
{
	switch (s) {
	case SESSION_ATTACHED:
		return "attached";
	case SESSION_TRACING:
		return "tracing";
	case SESSION_STOPPING:
		return "stopping";
	case SESSION_ENDED:
		return "ended";
	}
	return "?";
}
