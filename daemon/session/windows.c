// SPDX-License-Identifier: BSD-2-Clause
/*
 * Planning of windows
 *
 * Budget: the CPU time that the target uses for itself earns a share of it, given by the bound.
 * Each event spends the cost of an event, and each window the cost of opening and closing it. A gap
 * is as long as it takes to earn 1.25 times the average cost of a window (SLACK), and no gap ends
 * while the budget is far behind (DEBT_MAX). The bound thus holds over any 2 s within about a
 * third, whatever the target does, and however late the daemon closes a window. The budget is
 * capped, so that a long idle time does not pay for a burst of calls.
 *
 * Fair sample: every moment of the program must have the same chance to fall into a window. This
 * refers to the program's time, not to wall time: a window of 10 ms that begins in a loop shows 10
 * ms of the program; a window that begins where the program only makes calls shows 2 ms of it and 8 ms
 * of probes. Therefore:
 *
 *   - The length of a window is measured in the program's own time: elapsed time minus the time
 *     that the probes took. The profile cuts the window off at that length exactly (profile_limit).
 *   - The length and the time until the window opens are drawn in advance. Neither depends on what
 *     the target does then, and both depend on many previous windows, never on the last one alone:
 *     if an expensive window were followed by a long gap, the phases of the program would decide
 *     what is observed.
 *   - Both are drawn from 0.5 to 1.5 times the value that about ten windows per second can afford,
 *     so that they do not synchronise with a program that repeats itself.
 *   - A window is closed early only if it costs twice its share: the bound has priority. Early
 *     closing would show only the beginning of expensive phases, so the planned length can be
 *     afforded even for the most expensive recent phase.
 *
 * If the target earns at least what the probes spend, the window is not closed at all. A target
 * whose calls are cheap enough is thus observed all the time, and nothing is estimated.
 */
#include "session/windows.h"

#include <math.h>

#define NS 1e9

#define WINDOWS_PER_S 10.0
#define DRAW_LEAST    0.5 /* factors on the planned value */
#define DRAW_MOST     1.5
#define LENGTH_MIN    200e3
#define LENGTH_MAX    50e6 /* times DRAW_MOST: WINDOWS_LONGEST_MS */
#define GAP_MIN	      20e6
#define FIRST_DENSITY 2.0 /* assumed before it was measured */
#define SMOOTH	      0.2 /* weight of the newest window in the smoothed values */
#define SMOOTH_COST   0.05
#define STORM	      2.0  /* a window is cut at this multiple of its share */
#define FORGET_PEAK   0.99 /* factor per window */
/*
 * The budget holds at most the income of SAVED_S seconds. No window opens while the budget is
 * behind by more than the cost of DEBT_MAX windows. As that makes the choice of windows depend on
 * earlier ones, gaps are longer by SLACK than windows' costs require, so that it seldom happens.
 */
#define SAVED_S	 0.15
#define DEBT_MAX 5.0
#define SLACK	 1.25
/*
 * An idle target earns nothing. It is assumed to use at least CPUS_MIN CPUs, or it would never be
 * observed again after waiting.
 */
#define CPUS_MIN 0.02
#define LOOK_MIN 300e3
/* The delay in ns between attempts to open a window: after the first failure, and the maximum. */
#define FAILED_MIN 10000000ull
#define FAILED_MAX 2000000000ull
#define LOOK_MAX   4e6

/* xorshift64*: sufficient to avoid synchronisation with the target. */
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

/* Returns the probe time that may be spent per second. */
static double income(const struct windows *w)
{
	return w->bound * larger(w->cpus, CPUS_MIN);
}

/* Returns the cost that one window may have, in ns. */
static double share_of_window(const struct windows *w)
{
	return income(w) * NS / WINDOWS_PER_S;
}

/* An interrupt costs the target nothing while it is not running. */
double windows_link_ns(const struct windows *w)
{
	return w->link_ns * smaller(w->cpus, 1);
}

/*
 * Plans a length that the budget can afford, and that is not cut short in the most expensive recent
 * phase even if the longest length is drawn.
 */
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
		/* Assume that continuous tracing is affordable until measured otherwise. */
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
	/* The CPU usage without probes, smoothed over about a second of the target's own time. */
	undisturbed = larger(time - probes / larger(cpu / time, 1), 0);
	w->cpus += (own - w->cpus * undisturbed) / larger(undisturbed, NS);
	w->budget = smaller(w->budget + earned, budget_max(w)) - probes;
	w->spent += probes;
	w->earned += earned;
}

/* Returns how much of the program's own time the window has shown, in ns. */
static double shown(const struct windows *w, uint64_t now_ns)
{
	return larger((double)(now_ns - w->opened_ns) - w->spent, 0);
}

static bool is_over(const struct windows *w, uint64_t now_ns)
{
	/* Not because of a debt that earlier windows have left. */
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
		/* The first windows replace the assumed value. */
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
	/* If all time until then went to probes, it would be half of a window's share. */
	if (!w->length_ns)
		left = share_of_window(w) / 2;
	return (uint64_t)larger(smaller(left, LOOK_MAX), LOOK_MIN);
}
