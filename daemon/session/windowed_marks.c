// SPDX-License-Identifier: BSD-2-Clause
/*
 * Marks of a target that is traced in windows: chooses them before the second window (marks.h) and
 * passes their number to the profile.
 */
#include "session/tracee.h"

#define GIVE_UP_MAX 5
/* How often to look after marks that are kept, or are not paid for yet */
#define LOOK_US 20000
/*
 * Choosing takes some thousand hits, and as long as the marks are attached and detached, the program is in them most
 * of the time. Where hits took 4.8 us, that was 80 ms of a second, in pieces of up to 25 ms, which requests to a
 * service notice: there are no marks on such a machine.
 */
#define TOO_SLOW 0.5
/* What the target uses before marks are chosen, so that it has earned something, CPU time in ns */
#define FIRST_EARN_NS 400000000u

struct others {
	const struct profile *profile;
	uint64_t marks;
};

static bool is_choosing(const struct tracee *t)
{
	return !t->windowed.ctl.open && progress_chooses(&t->windowed.progress, t->cpu_ns);
}

uint64_t windowed_marks_due_us(const struct tracee *t, uint64_t due)
{
	const struct windowed *w = &t->windowed;

	if (is_choosing(t))
		return w->progress.next && !windows_affords(&w->ctl) ? LOOK_US
								     : PROGRESS_TURN_NS / 1000;
	return w->progress.marks.state == MARKS_KEPT && due > LOOK_US ? LOOK_US : due;
}

void windowed_marks_begin(struct tracee *t)
{
	struct progress *g = &t->windowed.progress;
	const struct cost cost = tracee_cost(t);
	const bool slow = cost_slowness(cost_enter(&cost)) >= TOO_SLOW;
	const struct marks_opts of = {
		.n = slow ? 0 : t->plan.nmarks,
		.hit_ns = cost_mark(&cost),
		.bound = target_opts_limit(&t->opts) / 100.0,
	};

	progress_end(g);
	/* Of the processes that have executed this program: tracee_fork shares them. */
	t->opcodes = opcodes_of(t->opcodes, &t->plan);
	progress_begin(g, t->opcodes, &of);
	g->marks.wait_cpu_ns = t->cpu_ns + FIRST_EARN_NS;
	t->windowed.marks_cleared = 0;
	profile_count_marks(t->profile, false);
}

static uint64_t kept_hits(const struct tracee *t)
{
	return progress_hits(&t->windowed.progress, t->probe);
}

static void on_thread(void *ctx, uint32_t tid, uint64_t marks)
{
	struct others *o = ctx;

	if (!profile_makes_calls(o->profile, tid))
		o->marks += marks;
}

/* hits: of the kept marks, with those of threads that make no calls */
static void report(struct tracee *t, uint64_t hits)
{
	struct others o = {.profile = t->profile, .marks = t->windowed.marks_cleared};

	if (t->windowed.progress.marks.state == MARKS_KEPT && t->probe)
		probe_marks_threads(t->probe, on_thread, &o);
	profile_set_marks(t->profile, hits > o.marks ? hits - o.marks : 0);
}

void windowed_marks_report(struct tracee *t)
{
	report(t, kept_hits(t));
}

bool windowed_marks_unfit(struct tracee *t)
{
	return progress_unfit(&t->windowed.progress, t->probe, t->cpu_ns);
}

/* Marks that are no longer of use are given up, and others chosen, some times. */
static void give_up(struct tracee *t)
{
	struct windowed *w = &t->windowed;

	report(t, w->progress.marks.last_hits);
	w->progress.hits += kept_hits(t);
	probe_marks_detach(t->probe);
	windowed_marks_begin(t);
	/* It does something else now than it did when rare opcodes were found out. */
	w->progress.marks.alone = true;
	if (++w->marks_given_up >= GIVE_UP_MAX)
		w->progress.marks.state = MARKS_NONE;
}

bool windowed_marks_turn(struct tracee *t)
{
	struct windowed *w = &t->windowed;

	if (windowed_marks_unfit(t))
		give_up(t);
	if (!is_choosing(t))
		return false;
	if (progress_turn(&w->progress, t->probe, t->target->pid, windows_affords(&w->ctl))) {
		probe_marks_forget_threads(t->probe);
		profile_count_marks(t->profile, true);
	}
	return true;
}

void windowed_marks_clear(struct tracee *t)
{
	t->windowed.marks_cleared = kept_hits(t);
	if (t->windowed.progress.marks.state == MARKS_KEPT && t->probe)
		probe_marks_forget_threads(t->probe);
}

uint64_t windowed_marks_ns(const struct tracee *t)
{
	return (uint64_t)progress_ns(&t->windowed.progress, t->probe);
}

uint64_t windowed_taken(const struct tracee *t)
{
	return t->overhead_ns + tracee_samples_ns(t) + windowed_marks_ns(t) + t->windowed.links_ns;
}
