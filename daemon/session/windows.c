// SPDX-License-Identifier: BSD-2-Clause
/*
 * When to watch
 *
 * A budget. The CPU time that the target uses for itself earns the bound's share of it; each event
 * spends what an event costs, each window what its opening and closing cost. Gaps are as long as it
 * takes to earn what windows cost on average and a quarter more, and none ends while the budget is far
 * behind: so the bound holds over any 2 s, give or take a third of it, whatever the target does, and
 * however late the daemon was in closing a window. The budget is capped, so that a long quiet time does
 * not pay for a storm.
 *
 * A fair sample. Every moment of the program must have the same chance to be in a window. Moments
 * of the program, not of the clock: a window of 10 ms that begins in a loop shows 10 ms of the
 * program, one that begins where it does nothing but calls shows 2 ms and 8 ms of probes. So:
 *
 *   - A window's length is measured in the program's own time, which is what has passed less what
 *     the probes took; the profile cuts it off to the nanosecond (profile_limit).
 *   - The length is drawn before it opens, and so is the time until it opens. Neither depends on
 *     what the target does then, and both depend on many windows before, never on the last one: if
 *     a dear one were followed by a long gap, a program's phases would decide what is looked at.
 *   - Both are drawn between a half and one and a half of what about ten windows a second can
 *     afford, so that they do not keep step with a program that does the same over and over.
 *   - A window is closed before its time only where it costs twice what one may cost: the bound comes
 *     first. What would be seen of such a time then would be its beginning, so a length is planned
 *     that can be afforded where the target was dearest lately.
 *
 * Where the target earns what the probes spend, the window is not closed at all. So a target whose
 * calls are cheap enough is watched all the time, and nothing is estimated.
 */
#include "session/windows.h"

#include <math.h>

#define NS 1e9

#define WINDOWS_PER_S 10.0
#define DRAW_LEAST    0.5 /* of what is planned */
#define DRAW_MOST     1.5
#define LENGTH_MIN    200e3
#define LENGTH_MAX    50e6
#define GAP_MIN	      20e6
#define FIRST_DENSITY 2.0 /* before it was measured */
#define SMOOTH	      0.2 /* the newest window's part in what is expected of the next one */
#define SMOOTH_COST   0.05
#define STORM	      2.0  /* times what a window may cost until it is cut */
#define FORGET_PEAK   0.99 /* a window */
/* The budget holds what this time earns, at the most, and no window opens where it is more behind than
 * so many windows. What is looked at depends on what was seen then: gaps are longer than what windows
 * cost would have them, so that it seldom comes to that. */
#define SAVED_S	 0.15
#define DEBT_MAX 5.0
#define SLACK	 1.25
/* A target that does nothing earns nothing. It is taken to use at least this, or what it waits for
 * would never be looked at again. */
#define CPUS_MIN 0.02
#define LOOK_MIN 300e3
/* Between attempts to open a window, after the first failure and at the most. */
#define FAILED_MIN 10000000ull
#define FAILED_MAX 2000000000ull
#define LOOK_MAX   4e6

/* xorshift64*: good enough to be out of step. */
static double draw(struct windows *w, double from, double to)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return from + (to - from) * (double)((w->random * 0x2545f4914f6cdd1dull) >> 11) / 0x1p53;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

/* Per second of time, what may be spent. */
static double income(const struct windows *w)
{
	return w->bound * larger(w->cpus, CPUS_MIN);
}

/* What one window may cost. */
static double share_of_window(const struct windows *w)
{
	return income(w) * NS / WINDOWS_PER_S;
}

/* An interrupt takes nothing of a target that does not run. */
double windows_link_ns(const struct windows *w)
{
	return w->link_ns * smaller(w->cpus, 1);
}

/* As long as may be afforded; and not so long that the dearest it may meet, drawn longest, is cut. */
static void plan_length(struct windows *w)
{
	double share = share_of_window(w), link = windows_link_ns(w), length = LENGTH_MAX;

	if (w->density > 0)
		length = (share - link) / w->density;
	if (w->peak > 0)
		length = smaller(length, (STORM * share - link) / (DRAW_MOST * w->peak));
	length = smaller(larger(length, LENGTH_MIN), LENGTH_MAX);
	w->need = windows_link_ns(w) + w->density * length;
	w->length_ns = w->load > 1 ? (uint64_t)(length * draw(w, DRAW_LEAST, DRAW_MOST)) : 0;
}

static double budget_max(const struct windows *w)
{
	return larger(income(w) * SAVED_S * NS, 2 * w->need);
}

void windows_init(struct windows *w, unsigned int percent, double link_ns, uint64_t seed)
{
	*w = (struct windows){
		.bound = percent / 100.0,
		.link_ns = link_ns,
		.random = seed | 1,
		.density = FIRST_DENSITY,
		/* Until it is known to be too dear, it is watched all the time. */
		.load = 0.9,
		.cpus = 1,
	};
	plan_length(w);
	w->cost = w->need;
	w->budget = w->need;
}

void windows_account(struct windows *w, uint64_t now_ns, uint64_t cpu_ns, uint64_t probe_ns)
{
	double probes = probe_ns > w->probe_ns ? (double)(probe_ns - w->probe_ns) : 0;
	double cpu = cpu_ns > w->cpu_ns ? (double)(cpu_ns - w->cpu_ns) : 0;
	double time = now_ns > w->seen_ns ? (double)(now_ns - w->seen_ns) : 0;
	bool first = !w->seen_ns;
	double own, earned, undisturbed;

	w->seen_ns = now_ns;
	w->cpu_ns = cpu_ns;
	w->probe_ns = probe_ns;
	if (first || time <= 0)
		return;
	own = cpu > probes ? cpu - probes : 0;
	earned = w->bound * (own + larger(CPUS_MIN - w->cpus, 0) * time);
	/* As it goes on without probes: over about a second of its own time. */
	undisturbed = larger(time - probes / larger(cpu / time, 1), 0);
	w->cpus += (own - w->cpus * undisturbed) / larger(undisturbed, NS);
	w->budget = smaller(w->budget + earned, budget_max(w)) - probes;
	w->spent += probes;
	w->earned += earned;
}

/* How much of the program the window has shown. */
static double shown(const struct windows *w, uint64_t now_ns)
{
	return larger((double)(now_ns - w->opened_ns) - w->spent, 0);
}

static bool is_over(const struct windows *w, uint64_t now_ns)
{
	/* Not for what others have left behind. */
	if (!w->length_ns)
		return w->budget < 0 && w->spent > w->need;
	return shown(w, now_ns) >= (double)w->length_ns ||
	       w->spent > STORM * larger(share_of_window(w), w->need);
}

enum windows_act windows_decide(struct windows *w, uint64_t now_ns)
{
	if (w->open)
		return is_over(w, now_ns) ? WINDOWS_CLOSE : WINDOWS_GO_ON;
	if (now_ns < w->next_ns)
		return WINDOWS_GO_ON;
	if (w->budget >= -DEBT_MAX * w->cost)
		return WINDOWS_OPEN;
	w->next_ns = now_ns + (uint64_t)(GAP_MIN * draw(w, DRAW_LEAST, DRAW_MOST));
	return WINDOWS_GO_ON;
}

void windows_failed(struct windows *w, uint64_t now_ns)
{
	w->failed++;
	w->wait_ns = w->wait_ns ? 2 * w->wait_ns : FAILED_MIN;
	if (w->wait_ns > FAILED_MAX)
		w->wait_ns = FAILED_MAX;
	w->next_ns = now_ns + w->wait_ns;
}

void windows_opened(struct windows *w, uint64_t now_ns)
{
	w->wait_ns = 0;
	w->open = true;
	w->opened_ns = now_ns;
	w->spent = w->earned = 0;
	w->budget -= windows_link_ns(w);
}

static void learn(struct windows *w, uint64_t now_ns)
{
	double own = larger(shown(w, now_ns), LENGTH_MIN / 4);

	w->density += SMOOTH * (w->spent / own - w->density);
	w->peak = larger(w->spent / own, FORGET_PEAK * w->peak);
	if (w->length_ns) {
		/* The first ones tell more than what was assumed. */
		w->closed++;
		w->cost += larger(SMOOTH_COST, 1 / (double)w->closed) *
			   (w->spent + windows_link_ns(w) - w->cost);
	}
	if (w->earned > 0)
		w->load += SMOOTH * (smaller(w->spent / w->earned, 100) - w->load);
}

void windows_closed(struct windows *w, uint64_t now_ns)
{
	double gap;

	w->open = false;
	learn(w, now_ns);
	plan_length(w);
	gap = larger(SLACK * w->cost / income(w), GAP_MIN);
	w->next_ns = now_ns + (uint64_t)(gap * draw(w, DRAW_LEAST, DRAW_MOST));
}

uint64_t windows_due(const struct windows *w, uint64_t now_ns)
{
	double left;

	if (!w->open) {
		left = w->next_ns > now_ns ? (double)(w->next_ns - now_ns) : 0;
		return (uint64_t)larger(left, LOOK_MIN);
	}
	left = ((double)w->length_ns - shown(w, now_ns)) * (1 + w->density);
	/* Nothing but probes meanwhile would cost half of what a window may. */
	if (!w->length_ns)
		left = share_of_window(w) / 2;
	return (uint64_t)larger(smaller(left, LOOK_MAX), LOOK_MIN);
}
