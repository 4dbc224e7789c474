// SPDX-License-Identifier: BSD-2-Clause
/* The recorders of slow calls of a set of targets: see slows.h and session.h. */
#include "session/slows.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "session/collector.h"
#include "session/timelines.h"

#define FORGOTTEN_NS (60 * CLOCK_NS_PER_S)
#define ID_MAX	     4000000u /* the control API limits numbers in paths to the range of pids */

static void close_place(struct sessions *ss, unsigned int i)
{
	struct slows *all = sessions_slows(ss);
	struct tracee *t;

	for (size_t k = 0; (t = sessions_tracee(ss, k)); k++)
		if (t->slow == all->v[i].slow)
			tracee_slow_end(t);
	slow_free(TAKE_PTR(all->v[i].slow));
}

void slows_forget(struct sessions *ss)
{
	const struct slows *all = sessions_slows(ss);
	uint64_t now = clock_monotonic_ns();

	for (unsigned int i = 0; i < SLOWS_MAX; i++)
		if (all->v[i].slow && now - all->v[i].read_ns > FORGOTTEN_NS)
			close_place(ss, i);
}

void slows_close(struct sessions *ss)
{
	for (unsigned int i = 0; i < SLOWS_MAX; i++)
		if (sessions_slows(ss)->v[i].slow)
			close_place(ss, i);
}

/* Returns the index of a free place, or an error. */
static int find_free(struct sessions *ss, struct diag *diag)
{
	for (unsigned int i = 0; i < SLOWS_MAX; i++)
		if (!sessions_slows(ss)->v[i].slow)
			return (int)i;
	return diag_set(diag, -EBUSY, PYP_EXIT_BUSY, "wait for the end of one",
			"slow calls are already being recorded %u times", SLOWS_MAX);
}

/* Returns the recorder's index, or an error. */
static int find(struct sessions *ss, uint32_t id, struct diag *diag)
{
	const struct slows *all = sessions_slows(ss);

	for (unsigned int i = 0; i < SLOWS_MAX; i++)
		if (all->v[i].slow && all->v[i].id == id)
			return (int)i;
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "it has ended or does not exist",
			"no slow calls are being recorded with number %" PRIu32, id);
}

/* Adds one target. Returns 1, 0 if it is not meant, or an error. */
static int add_target(struct tracee *t, pid_t pid, struct slow *slow, struct diag *diag)
{
	const struct collector *c = t->collector;
	int r;

	if (pid ? t->target->pid != pid : t->state == SESSION_ENDED || c->no_timeline)
		return 0;
	if (c->no_timeline)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, c->timeline_hint,
				"process %d %s: its calls are not seen one by one", pid,
				c->no_timeline);
	if (t->state == SESSION_ENDED)
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS,
				"the profile it left is in its snapshot", "process %d has ended",
				pid);
	r = tracee_slow_begin(t, slow, diag);
	return r < 0 ? r : 1;
}

static int add_targets(struct sessions *ss, pid_t pid, struct slow *slow, struct diag *diag)
{
	struct tracee *t;
	int n = 0;

	for (size_t i = 0; (t = sessions_tracee(ss, i)); i++) {
		int r = add_target(t, pid, slow, diag);

		if (r < 0)
			return r;
		n += r;
	}
	if (n)
		return 0;
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "`pyprofctl attach PID` adds one",
			pid ? "process %d is not attached" : "no traced process is attached", pid);
}

int sessions_slow_begin(struct sessions *ss, pid_t pid, const struct slow_opts *opts,
			uint32_t *ret_id, struct diag *diag)
{
	struct slows *all = sessions_slows(ss);
	struct slow_opts o = *opts;
	struct tracee *t;
	int place, r;

	slows_forget(ss);
	place = find_free(ss, diag);
	if (place < 0)
		return place;
	/* Records still in the rings are from before. */
	for (size_t i = 0; (t = sessions_tracee(ss, i)); i++)
		tracee_catch_up(t);
	o.from_ns = clock_monotonic_ns();
	o.from_unix_ns = clock_unix_ns();
	r = slow_new(&o, &all->v[place].slow, diag);
	if (r < 0)
		return r;
	r = add_targets(ss, pid, all->v[place].slow, diag);
	if (r < 0) {
		close_place(ss, (unsigned int)place);
		return r;
	}
	all->last_id = all->last_id % ID_MAX + 1;
	all->v[place].id = *ret_id = all->last_id;
	all->v[place].read_ns = o.from_ns;
	return 0;
}

int sessions_slow_read(struct sessions *ss, uint32_t id, enum slow_detail detail, json_t **ret,
		       struct diag *diag)
{
	int place = find(ss, id, diag);
	struct slows *all = sessions_slows(ss);

	if (place < 0)
		return place;
	all->v[place].read_ns = clock_monotonic_ns();
	*ret = slow_json(all->v[place].slow, all->v[place].read_ns, detail);
	if (!*ret || json_object_set_new(*ret, "id", json_integer(id)) < 0)
		return diag_errno(diag, ENOMEM, "cannot report slow calls");
	return 0;
}

int sessions_slow_end(struct sessions *ss, uint32_t id, struct diag *diag)
{
	int place = find(ss, id, diag);

	if (place < 0)
		return place;
	close_place(ss, (unsigned int)place);
	return 0;
}
