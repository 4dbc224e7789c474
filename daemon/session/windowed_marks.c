// SPDX-License-Identifier: BSD-2-Clause
/*
 * Marks of a target that is traced in windows: chooses them before the second window (marks.h) and
 * passes their number to the profile.
 */
#include "session/tracee.h"
#include "session/windowed.h"

#define GIVE_UP_MAX 5
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

/* Marks are counted from now on. */
static void begin_counting(struct tracee *t)
{
	probe_marks_forget_threads(t->probe);
	profile_count_marks(t->profile, true);
}

bool windowed_marks_choosing(const struct tracee *t)
{
	const struct windowed *w = &t->windowed;

	if (choosing_waits(&w->choosing, t->cpu_ns))
		return false;
	return !w->ctl.open && w->choosing.marks.state != MARKS_KEPT &&
	       w->choosing.marks.state != MARKS_NONE;
}

uint64_t windowed_marks_due_us(const struct tracee *t)
{
	const struct windowed *w = &t->windowed;
	const bool pays = w->choosing.next && !windows_affords(&w->ctl);

	return pays ? MARKS_LOOK_US : MARKS_TURN_US;
}

/* Of the processes that have executed this program: tracee_fork shares them. */
static void find_opcodes(struct tracee *t)
{
	choosing_end(&t->windowed.choosing);
	if (!t->opcodes || !opcodes_are_of(t->opcodes, &t->plan)) {
		opcodes_free(t->opcodes);
		t->opcodes = opcodes_new(&t->plan);
	}
	t->windowed.choosing.opcodes = t->opcodes;
}

static void begin(struct tracee *t)
{
	const struct cost cost = tracee_cost(t);

	find_opcodes(t);
	marks_begin(&t->windowed.choosing.marks,
		    cost_slowness(cost_enter(&cost)) < TOO_SLOW ? t->plan.nmarks : 0,
		    cost_mark(&cost), target_opts_limit(&t->opts) / 100.0);
	t->windowed.choosing.marks.wait_cpu_ns = t->cpu_ns + FIRST_EARN_NS;
	t->windowed.choosing.end_ns = 0;
	t->windowed.choosing.next = false;
	t->windowed.marks_cleared = 0;
	t->windowed.marks_are_unfit = false;
	profile_count_marks(t->profile, false);
}

static uint64_t kept_hits(const struct tracee *t)
{
	return choosing_kept_hits(&t->windowed.choosing, t->probe);
}

static void on_thread(void *ctx, uint32_t tid, uint64_t marks)
{
	struct others *o = ctx;

	if (!profile_makes_calls(o->profile, tid))
		o->marks += marks;
}

/* The marks of threads that make no calls. */
static uint64_t others_hits(const struct tracee *t)
{
	struct others o = {.profile = t->profile};

	if (t->windowed.choosing.marks.state == MARKS_KEPT && t->probe)
		probe_marks_threads(t->probe, on_thread, &o);
	return o.marks;
}

/* hits: of the kept marks */
static void report(struct tracee *t, uint64_t hits)
{
	uint64_t others = t->windowed.marks_cleared + others_hits(t);

	profile_set_marks(t->profile, hits > others ? hits - others : 0);
}

void windowed_marks_report(struct tracee *t)
{
	report(t, kept_hits(t));
}

bool windowed_marks_unfit(struct tracee *t)
{
	struct windowed *w = &t->windowed;
	uint64_t counts[PYP_MARKS];

	if (w->choosing.marks.state != MARKS_KEPT || w->marks_are_unfit)
		return w->marks_are_unfit;
	probe_marks_read(t->probe, counts);
	w->marks_are_unfit = marks_unfit(&w->choosing.marks, tracee_now(), t->cpu_ns, counts);
	return w->marks_are_unfit;
}

void windowed_marks_begin(struct tracee *t)
{
	begin(t);
}

/* Marks that are no longer of use are given up, and others chosen, some times. */
static void give_up(struct tracee *t)
{
	struct windowed *w = &t->windowed;

	if (!windowed_marks_unfit(t))
		return;
	report(t, w->choosing.marks.last_hits);
	w->choosing.hits += kept_hits(t);
	probe_marks_detach(t->probe);
	begin(t);
	/* It does something else now than it did when rare opcodes were found out. */
	w->choosing.marks.alone = true;
	if (++w->marks_given_up >= GIVE_UP_MAX)
		w->choosing.marks.state = MARKS_NONE;
}

bool windowed_marks_turn(struct tracee *t)
{
	struct windowed *w = &t->windowed;

	give_up(t);
	if (!windowed_marks_choosing(t))
		return false;
	if (choosing_turn(&w->choosing, t->probe, t->target->pid, windows_affords(&w->ctl)))
		begin_counting(t);
	return true;
}

void windowed_marks_clear(struct tracee *t)
{
	t->windowed.marks_cleared = kept_hits(t);
	if (t->windowed.choosing.marks.state == MARKS_KEPT && t->probe)
		probe_marks_forget_threads(t->probe);
}

uint64_t windowed_marks_ns(const struct tracee *t)
{
	const struct choosing *c = &t->windowed.choosing;

	return (uint64_t)(c->marks.hit_ns * (double)(c->hits + kept_hits(t)));
}

uint64_t windowed_taken(const struct tracee *t)
{
	return t->overhead_ns + tracee_samples_ns(t) + windowed_marks_ns(t) + t->windowed.links_ns;
}
