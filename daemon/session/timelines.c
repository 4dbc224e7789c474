// SPDX-License-Identifier: BSD-2-Clause
/* The timelines of a set of targets: see session.h. */
#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "session/set.h"

static int timeline_begin(struct tracee *t, void *of, struct diag *diag)
{
	return tracee_timeline_begin(t, of, diag);
}

static void timeline_end(struct tracee *t, const void *of)
{
	if (t->timeline == of)
		tracee_timeline_end(t);
}

static void timeline_drop(void *of)
{
	timeline_free(of);
}

const struct recorder_kind timelines_kind = {
	.max = RECORDERS_MAX,
	.forgotten_ns = 30 * CLOCK_NS_PER_S,
	.impossible = "it has no timeline",
	.begin = timeline_begin,
	.end = timeline_end,
	.free = timeline_drop,
};

/* Returns the timeline's recorder, or NULL with the error. */
static struct recorder *find(struct sessions *ss, uint32_t id, struct diag *diag)
{
	struct recorder *r = recorders_find(&ss->timelines, id);

	if (!r)
		diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "it has ended or does not exist",
			 "there is no timeline %" PRIu32, id);
	return r;
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

/* Pass what is known of a target by now to its timeline's trigger. */
static void check_target(struct tracee *t)
{
	struct timeline_moment now = {.now_ns = clock_monotonic_ns()};
	const uint64_t current = tracee_current_ns(t), cpu = t->cpu_ns;

	now.current_ns = current < now.now_ns ? current : now.now_ns;
	if (timeline_needs_cpu(t->timeline)) {
		tracee_read_cpu(t);
		now.cpu_ns = t->cpu_ns;
		/* Accounts expect the value of their own reading. */
		t->cpu_ns = cpu;
	}
	timeline_check(t->timeline, t->timeline_source, &now);
}

void timelines_check(struct sessions *ss)
{
	struct tracee *t;

	for (size_t i = 0; (t = sessions_tracee(ss, i)); i++)
		if (t->timeline)
			check_target(t);
}

/* Returns a timeline that begins now, owned by the caller. */
static int new_timeline(const struct sessions_timeline *opts, struct timeline **ret,
			struct diag *diag)
{
	_cleanup_(trigger_freep) struct trigger *trigger = NULL;
	struct timeline_opts to = {
		.buffer = opts->buffer, .keep_ns = opts->keep_ns, .until_ns = UINT64_MAX};
	int r = opts->trigger ? trigger_new(opts->trigger, &trigger, diag) : 0;

	if (r < 0)
		return r;
	to.trigger = trigger;
	to.from_ns = clock_monotonic_ns();
	to.from_unix_ns = clock_unix_ns();
	if (opts->duration_ns)
		to.until_ns = to.from_ns + opts->duration_ns;
	*ret = timeline_new(&to);
	if (!*ret)
		return diag_errno(diag, ENOMEM, "cannot record a timeline");
	trigger = NULL; /* the timeline's now */
	return 0;
}

int sessions_timeline_begin(struct sessions *ss, pid_t pid, const struct sessions_timeline *opts,
			    uint32_t *ret_id, struct diag *diag)
{
	struct recorder *at = recorders_prepare(ss, &ss->timelines);
	struct timeline *tl;
	int r;

	if (!at)
		return diag_set(diag, -EBUSY, PYP_EXIT_BUSY, "wait for the end of one",
				"%u timelines are already being recorded", timelines_kind.max);
	r = new_timeline(opts, &tl, diag);
	if (r < 0)
		return r;
	r = recorders_begin(ss, &ss->timelines, at, tl, pid, diag);
	if (r < 0)
		return r;
	*ret_id = at->id;
	return 0;
}

int sessions_timeline_read(struct sessions *ss, uint32_t id, char **ret_data, size_t *ret_n,
			   struct diag *diag)
{
	struct recorder *r = find(ss, id, diag);
	struct timeline *tl;

	if (!r)
		return -ESRCH;
	tl = r->of;
	r->read_ns = clock_monotonic_ns();
	if (r->read_ns >= timeline_until(tl) || timeline_idle(tl) || timeline_is_met(tl))
		complete(ss, tl);
	else
		sessions_read_rings(ss);
	timeline_take(tl, ret_data, ret_n);
	if (timeline_drained(tl))
		recorders_close(ss, &ss->timelines, r);
	return 0;
}

int sessions_timeline_end(struct sessions *ss, uint32_t id, struct diag *diag)
{
	struct recorder *r = find(ss, id, diag);

	if (!r)
		return -ESRCH;
	complete(ss, r->of);
	return 0;
}

void sessions_timelines_end(struct sessions *ss)
{
	for (unsigned int i = 0; i < RECORDERS_MAX; i++)
		if (ss->timelines.v[i].of)
			complete(ss, ss->timelines.v[i].of);
}

bool sessions_timeline_status(struct sessions *ss, size_t i, struct sessions_timeline_status *ret)
{
	for (size_t k = 0; k < RECORDERS_MAX; k++) {
		const struct recorder *r = &ss->timelines.v[k];

		if (!r->of || i--)
			continue;
		*ret = (struct sessions_timeline_status){
			.id = r->id,
			.waiting = timeline_waiting(r->of),
			.dropped = timeline_dropped(r->of),
			.recent = timeline_is_recent(r->of),
			.ended = timeline_finished(r->of),
		};
		return true;
	}
	return false;
}
