// SPDX-License-Identifier: BSD-2-Clause
/* The timelines of a set of targets: see timelines.h and session.h. */
#include "session/timelines.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "session/collector.h"

#define FORGOTTEN_NS (30 * CLOCK_NS_PER_S)
#define ID_MAX	     4000000u /* the control API limits numbers in paths to the range of pids */

/* Detaches the timeline from every target, then frees it. */
static void close_place(struct sessions *ss, int i)
{
	struct timelines *tls = sessions_timelines(ss);
	struct tracee *t;

	for (size_t k = 0; (t = sessions_tracee(ss, k)); k++)
		if (t->timeline == tls->v[i].timeline)
			tracee_timeline_end(t);
	timeline_free(TAKE_PTR(tls->v[i].timeline));
}

void timelines_forget(struct sessions *ss)
{
	struct timelines *tls = sessions_timelines(ss);
	uint64_t now = clock_monotonic_ns();

	for (int i = 0; i < (int)TIMELINES_MAX; i++)
		if (tls->v[i].timeline && now - tls->v[i].read_ns > FORGOTTEN_NS)
			close_place(ss, i);
}

void timelines_close(struct sessions *ss)
{
	for (int i = 0; i < (int)TIMELINES_MAX; i++)
		if (sessions_timelines(ss)->v[i].timeline)
			close_place(ss, i);
}

/* Returns the index of a free slot, or an error. */
static int find_free(struct sessions *ss, struct diag *diag)
{
	const struct timelines *tls = sessions_timelines(ss);

	for (unsigned int i = 0; i < TIMELINES_MAX; i++)
		if (!tls->v[i].timeline)
			return (int)i;
	return diag_set(diag, -EBUSY, PYP_EXIT_BUSY, "wait for the end of one",
			"%u timelines are already being recorded", TIMELINES_MAX);
}

/* Returns the timeline's index, or an error. */
static int find(struct sessions *ss, uint32_t id, struct diag *diag)
{
	const struct timelines *tls = sessions_timelines(ss);

	for (unsigned int i = 0; i < TIMELINES_MAX; i++)
		if (tls->v[i].timeline && tls->v[i].id == id)
			return (int)i;
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "it has ended or does not exist",
			"there is no timeline %" PRIu32, id);
}

/* Ends the timeline: adds all events up to now, and accepts no more. */
static void complete(struct sessions *ss, struct timeline *tl)
{
	struct tracee *t;

	if (timeline_finished(tl))
		return;
	for (size_t i = 0; (t = sessions_tracee(ss, i)); i++) {
		if (t->timeline != tl)
			continue;
		tracee_catch_up(t);
		tracee_timeline_end(t);
	}
	timeline_finish(tl, clock_monotonic_ns());
}

/* Adds one target, or all targets (pid 0). */
static int add_targets(struct sessions *ss, pid_t pid, struct timeline *tl, struct diag *diag)
{
	struct tracee *t;
	int n = 0, r;

	for (size_t i = 0; (t = sessions_tracee(ss, i)); i++) {
		const struct collector *c = t->collector;

		if (pid ? t->target->pid != pid : t->state == SESSION_ENDED || c->no_timeline)
			continue;
		if (c->no_timeline)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, c->timeline_hint,
					"process %d %s: it has no timeline", pid, c->no_timeline);
		if (t->state == SESSION_ENDED)
			return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS,
					"the profile it left is in its snapshot",
					"process %d has ended", pid);
		r = tracee_timeline_begin(t, tl, diag);
		if (r < 0)
			return r;
		n++;
	}
	if (n)
		return 0;
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "`pyprofctl attach PID` adds one",
			pid ? "process %d is not attached" : "no process is attached", pid);
}

int sessions_timeline_begin(struct sessions *ss, pid_t pid, const struct sessions_timeline *opts,
			    uint32_t *ret_id, struct diag *diag)
{
	struct timelines *tls = sessions_timelines(ss);
	struct timeline_opts to = {.buffer = opts->buffer, .until_ns = UINT64_MAX};
	struct tracee *t;
	int place, r;

	timelines_forget(ss);
	place = find_free(ss, diag);
	if (place < 0)
		return place;
	/* Records still in the rings are from before the timeline. */
	for (size_t i = 0; (t = sessions_tracee(ss, i)); i++)
		tracee_catch_up(t);
	to.from_ns = clock_monotonic_ns();
	to.from_unix_ns = clock_unix_ns();
	if (opts->duration_ns)
		to.until_ns = to.from_ns + opts->duration_ns;
	tls->v[place].timeline = timeline_new(&to);
	if (!tls->v[place].timeline)
		return diag_errno(diag, ENOMEM, "cannot record a timeline");
	r = add_targets(ss, pid, tls->v[place].timeline, diag);
	if (r < 0) {
		close_place(ss, place);
		return r;
	}
	tls->last_id = tls->last_id % ID_MAX + 1;
	tls->v[place].id = *ret_id = tls->last_id;
	tls->v[place].read_ns = to.from_ns;
	return 0;
}

int sessions_timeline_read(struct sessions *ss, uint32_t id, char **ret_data, size_t *ret_n,
			   struct diag *diag)
{
	struct timelines *tls = sessions_timelines(ss);
	struct timeline *tl;
	int place;

	place = find(ss, id, diag);
	if (place < 0)
		return place;
	tl = tls->v[place].timeline;
	tls->v[place].read_ns = clock_monotonic_ns();
	if (tls->v[place].read_ns >= timeline_until(tl) || timeline_idle(tl))
		complete(ss, tl);
	else
		sessions_read_rings(ss);
	timeline_take(tl, ret_data, ret_n);
	if (timeline_drained(tl))
		close_place(ss, place);
	return 0;
}

int sessions_timeline_end(struct sessions *ss, uint32_t id, struct diag *diag)
{
	int place;

	place = find(ss, id, diag);
	if (place < 0)
		return place;
	complete(ss, sessions_timelines(ss)->v[place].timeline);
	return 0;
}

void sessions_timelines_end(struct sessions *ss)
{
	for (unsigned int i = 0; i < TIMELINES_MAX; i++)
		if (sessions_timelines(ss)->v[i].timeline)
			complete(ss, sessions_timelines(ss)->v[i].timeline);
}

bool sessions_timeline_status(struct sessions *ss, size_t i, struct sessions_timeline_status *ret)
{
	const struct timelines *tls = sessions_timelines(ss);

	for (size_t k = 0; k < TIMELINES_MAX; k++) {
		const struct timeline *tl = tls->v[k].timeline;

		if (!tl || i--)
			continue;
		*ret = (struct sessions_timeline_status){
			.id = tls->v[k].id,
			.waiting = timeline_waiting(tl),
			.dropped = timeline_dropped(tl),
		};
		return true;
	}
	return false;
}
