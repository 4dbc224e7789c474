// SPDX-License-Identifier: BSD-2-Clause
#include "session/recorders.h"

#include <errno.h>

#include "base/clock.h"
#include "session/collector.h"

#define ID_MAX 4000000u /* the control API limits numbers in paths to the range of pids */

void recorders_close(struct sessions *ss, struct recorders *rs, struct recorder *r)
{
	struct tracee *t;

	for (size_t k = 0; (t = sessions_tracee(ss, k)); k++)
		rs->kind->end(t, r->of);
	rs->kind->free(TAKE_PTR(r->of));
}

/* Closes those whose last request was more than this time ago. */
static void close_older(struct sessions *ss, struct recorders *rs, uint64_t ns)
{
	uint64_t now = clock_monotonic_ns();

	for (unsigned int i = 0; i < RECORDERS_MAX; i++)
		if (rs->v[i].of && now - rs->v[i].read_ns >= ns)
			recorders_close(ss, rs, &rs->v[i]);
}

void recorders_forget(struct sessions *ss, struct recorders *rs)
{
	close_older(ss, rs, rs->kind->forgotten_ns);
}

void recorders_close_all(struct sessions *ss, struct recorders *rs)
{
	close_older(ss, rs, 0);
}

struct recorder *recorders_find(struct recorders *rs, uint32_t id)
{
	for (unsigned int i = 0; i < RECORDERS_MAX; i++)
		if (rs->v[i].of && rs->v[i].id == id)
			return &rs->v[i];
	return NULL;
}

struct recorder *recorders_prepare(struct sessions *ss, struct recorders *rs)
{
	struct recorder *r = rs->v, *end = rs->v + rs->kind->max;
	struct tracee *t;

	recorders_forget(ss, rs);
	while (r < end && r->of)
		r++;
	if (r == end)
		return NULL;
	for (size_t i = 0; (t = sessions_tracee(ss, i)); i++)
		tracee_catch_up(t);
	return r;
}

static int refuse(const struct recorder_kind *kind, const struct tracee *t, struct diag *diag)
{
	const struct collector *c = t->collector;

	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, c->timeline_hint, "process %d %s: %s",
			t->target->pid, c->no_timeline, kind->impossible);
}

/* Adds one target. Returns 1, 0 if it is not meant, or an error. */
static int add_target(const struct recorder_kind *kind, struct tracee *t, pid_t pid, void *of,
		      struct diag *diag)
{
	const struct collector *c = t->collector;
	int r;

	if (pid ? t->target->pid != pid : t->state == SESSION_ENDED || c->no_timeline)
		return 0;
	if (c->no_timeline)
		return refuse(kind, t, diag);
	if (t->state == SESSION_ENDED)
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS,
				"the profile it left is in its snapshot", "process %d has ended",
				pid);
	r = kind->begin(t, of, diag);
	return r < 0 ? r : 1;
}

static int add_targets(struct sessions *ss, const struct recorder_kind *kind, pid_t pid, void *of,
		       struct diag *diag)
{
	struct tracee *t;
	int n = 0;

	for (size_t i = 0; (t = sessions_tracee(ss, i)); i++) {
		int r = add_target(kind, t, pid, of, diag);

		if (r < 0)
			return r;
		n += r;
	}
	if (n)
		return 0;
	/* why none of them has records of each call */
	for (size_t i = 0; !pid && (t = sessions_tracee(ss, i)); i++)
		if (t->state != SESSION_ENDED)
			return refuse(kind, t, diag);
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "`pyprofctl attach PID` adds one",
			pid ? "process %d is not attached" : "no traced process is attached", pid);
}

int recorders_begin(struct sessions *ss, struct recorders *rs, struct recorder *r, void *of,
		    pid_t pid, struct diag *diag)
{
	int err = add_targets(ss, rs->kind, pid, of, diag);

	r->of = of;
	if (err < 0) {
		recorders_close(ss, rs, r);
		return err;
	}
	r->id = rs->last_id = rs->last_id % ID_MAX + 1;
	r->read_ns = clock_monotonic_ns();
	return 0;
}
