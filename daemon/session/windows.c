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
 *   - A gap is planned by the CPU usage of the last second. If the target uses more during the gap,
 *     it earns more, and the gap is shortened accordingly: an idle process that becomes busy is not
 *     left unobserved for the minute that its windows would have cost it while idle.
 *   - Both are drawn from 0.5 to 1.5 times the value that about ten windows per second can afford,
 *     so that they do not synchronise with a program that repeats itself.
 *   - A window is closed early only if it costs twice its share: the bound has priority. Early
 *     closing would show only the beginning of expensive phases, so the planned length can be
 *     afforded even for the most expensive recent phase.
 *   - A program that mostly waits earns little, and a burst of its calls may cost more than the
 *     tenth part of what it earns in a second: most windows with calls would be closed early. It has
 *     fewer and longer windows instead, which may cost STORM_NS, however little it earns.
 *
 * If the target earns at least what the probes spend, the window is not closed at all. A target
 * whose calls are cheap enough is thus observed all the time, and nothing is estimated.
 */
#include "session/windows.h"

#include <math.h>

#define NS 1e9

#define WINDOWS_PER_S 12.5
/*
 * A window delays what the program does by what its probes take, which may be this much per CPU: with
 * 2.5 ms, the slowest of a hundred requests to a service took 1.4 times as long. A whole window may take
 * more, so that there is none for WHOLE_APART times as long: it delays one request in some hundred.
 */
#define STALL_NS      1.0e6
#define WHOLE_APART   250.0
#define WHOLE_NS      100e6 /* what its probes may take per CPU */
#define LEAST_PER_S   2.0   /* for a share of at most SHARE_NS */
#define SHARE_NS      1e6
#define DRAW_LEAST    0.5 /* factors on the planned value */
#define DRAW_MOST     1.5
#define LENGTH_MIN    200e3
#define LENGTH_MAX    50e6 /* times DRAW_MOST: WINDOWS_LONGEST_MS */
#define GAP_MIN	      80e6 /* 1 / WINDOWS_PER_S */
#define AGAIN_NS      20e6 /* when a window had to wait */
#define OWN_LEAST     0.05 /* part of a window that is the program's own, at least */
#define FIRST_DENSITY 2.0  /* assumed before it was measured */
#define SMOOTH	      0.2  /* weight of the newest window in the smoothed values */
#define SHOWN_MAX     20e6 /* density: longer windows count as one of this length that cost as much */
#define SMOOTH_COST   0.05
#define STORM	      2.0  /* a window is cut at this multiple of its share, or later: */
#define STORM_NS      5e6  /* of a program that waits */
#define FORGET_PEAK   0.99 /* factor per window */
/*
 * The budget holds at most the income of SAVED_S seconds. No window opens while the budget is
 * behind by more than the cost of DEBT_MAX windows, or of those that DEBT_S seconds earn, but at least
 * one. As that makes the choice of windows depend on earlier ones, gaps are longer by SLACK than
 * windows' costs require, so that it seldom happens.
 */
#define SAVED_S	 0.15
#define DEBT_MAX 5.0
#define DEBT_S	 0.5
#define SLACK	 1.25
/* What is not a window's may be spent in advance: what so many seconds earn. */
#define AHEAD_S 0.1
/*
 * An idle target earns nothing, and would never be observed again after waiting: as a part of one CPU, probes may
 * take at least this.
 */
#define LEAST	 0.005
#define CPUS_MIN 0.02 /* it is assumed to use so many */
#define LOOK_MIN 200e3
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
	return larger(w->bound * w->cpus, LEAST);
}

/* Returns the cost that one window may have, in ns. */
static double share_of_window(const struct windows *w)
{
	double share = income(w) * NS / WINDOWS_PER_S;

	return smaller(larger(share, smaller(SHARE_NS, income(w) * NS / LEAST_PER_S)),
		       STALL_NS * larger(w->cpus, 1));
}

/* Returns at which cost a window is cut. */
static double storm_ns(const struct windows *w)
{
	double waits = larger(1 - w->cpus, 0);

	return larger(STORM * share_of_window(w), STORM_NS * waits);
}

/* An interrupt costs the target nothing while it is not running. */
double windows_link_ns(const struct windows *w)
{
	return w->link_ns * smaller(w->cpus, 1);
}

/*
 * Returns the length at which a window would cost `most` if one of `own` ns has cost `spent`. A longer one
 * would have shown more of the same if the program is always busy, and some more of its waiting else.
 */
static double length_at(const struct windows *w, double spent, double own, double most)
{
	double times = larger(most / spent, 0);

	if (times > 1)
		times = 1 + (times - 1) / smaller(larger(w->cpus, CPUS_MIN), 1);
	return times * own;
}

static double most_length(const struct windows *w)
{
	return length_at(w, w->peak, w->peak_own, storm_ns(w) - windows_link_ns(w));
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
		length = smaller(length, most_length(w) / DRAW_MOST);
	length = smaller(larger(length, LENGTH_MIN), LENGTH_MAX);
	w->need = windows_link_ns(w) + w->density * length;
	w->length_ns = w->load > 1 ? (uint64_t)(length * draw(w, DRAW_LEAST, DRAW_MOST)) : 0;
}

static double budget_max(const struct windows *w)
{
	return larger(income(w) * SAVED_S * NS, 2 * w->need);
}

void windows_init(struct windows *w, unsigned int percent, double link_ns, double cpus,
		  uint64_t seed)
{
	*w = (struct windows){
		.bound = percent / 100.0,
		.link_ns = link_ns,
		.random = seed | 1,
		.density = FIRST_DENSITY,
		/* Assume that continuous tracing is affordable until measured otherwise. */
		.load = 0.9,
		.cpus = cpus,
	};
	plan_length(w);
	w->cost = w->need;
	w->budget = w->need;
}

static double debt_max(const struct windows *w)
{
	return larger(smaller(DEBT_MAX * w->cost, DEBT_S * NS * income(w)), w->cost);
}

/* Returns how long it takes to earn the cost of a window. */
static double gap_ns(const struct windows *w)
{
	return larger(SLACK * w->cost / income(w), GAP_MIN) * w->gap_drawn;
}

static void shorten_gap(struct windows *w)
{
	uint64_t next = w->closed_ns + (uint64_t)gap_ns(w);

	if (w->gap_drawn > 0 && next < w->next_ns)
		w->next_ns = next;
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
	earned = w->bound * own + larger(LEAST - w->bound * w->cpus, 0) * time;
	/* The CPU usage without probes, smoothed over about a second of the target's own time. */
	undisturbed = larger(time - probes / larger(cpu / time, 1), 0);
	w->cpus += (own - w->cpus * undisturbed) / larger(undisturbed, NS);
	w->budget = smaller(w->budget + earned, budget_max(w)) - probes;
	w->spent += probes;
	w->earned += earned;
	shorten_gap(w);
}

/*
 * Returns how much of the program's own time the window has shown, in ns. What probes take is known to some
 * percent, and in a program that only makes calls nearly all of the time is theirs.
 */
static double shown(const struct windows *w, uint64_t now_ns)
{
	const double passed = (double)(now_ns - w->opened_ns);

	return larger(passed - w->spent, OWN_LEAST * passed);
}

static bool is_over(const struct windows *w, uint64_t now_ns)
{
	/* Not because of a debt that earlier windows have left. */
	if (!w->length_ns)
		return w->budget < 0 && w->spent > w->need;
	return shown(w, now_ns) >= (double)w->length_ns ||
	       w->spent > larger(storm_ns(w), STORM * w->need);
}

enum windows_act windows_decide(struct windows *w, uint64_t now_ns, struct windows_shown shown)
{
	if (w->open && (shown.all || now_ns - w->opened_ns > w->length_ns + WINDOWS_TAIL_NS) &&
	    w->length_ns)
		return WINDOWS_CLOSE;
	if (w->open && is_over(w, now_ns))
		return shown.lasts && w->spent < WHOLE_NS * larger(w->cpus, 1) ? WINDOWS_CUT
									       : WINDOWS_CLOSE;
	if (w->open)
		return WINDOWS_GO_ON;
	if (now_ns < w->next_ns)
		return WINDOWS_GO_ON;
	if (w->budget >= -debt_max(w))
		return WINDOWS_OPEN;
	w->gap_drawn = 0;
	w->next_ns = now_ns + (uint64_t)(AGAIN_NS * draw(w, DRAW_LEAST, DRAW_MOST));
	return WINDOWS_GO_ON;
}

void windows_failed(struct windows *w, uint64_t now_ns)
{
	w->failed++;
	w->gap_drawn = 0;
	w->wait_ns = w->wait_ns ? 2 * w->wait_ns : FAILED_MIN;
	if (w->wait_ns > FAILED_MAX)
		w->wait_ns = FAILED_MAX;
	w->next_ns = now_ns + w->wait_ns;
}

void windows_opened(struct windows *w, uint64_t now_ns)
{
	w->wait_ns = 0;
	w->open = true;
	w->whole = w->length_ns && now_ns >= w->whole_ns;
	w->opened_ns = now_ns;
	w->spent = w->earned = 0;
	w->budget -= windows_link_ns(w);
}

/* The first window with calls replaces the assumed value. */
static void learn_density(struct windows *w, double own)
{
	const bool first = !w->learned && w->spent > windows_link_ns(w);

	w->learned |= first;
	w->density += (first ? 1 : SMOOTH) * (w->spent / own - w->density);
}

static void learn_peak(struct windows *w, double own)
{
	const double most = storm_ns(w) - windows_link_ns(w);

	w->peak *= FORGET_PEAK;
	if (w->spent <= 0 || (w->peak > 0 && length_at(w, w->spent, own, most) >= most_length(w)))
		return;
	w->peak = w->spent;
	w->peak_own = own;
}

/* tail: the part of what was spent that whole calls have taken. They are rare, and paid for later. */
static void learn(struct windows *w, uint64_t now_ns, uint64_t own_ns, double tail)
{
	double own = larger(larger((double)own_ns, shown(w, now_ns)), LENGTH_MIN / 4);

	learn_density(w, smaller(own, SHOWN_MAX));
	learn_peak(w, own);
	if (w->length_ns) {
		/* The first windows replace the assumed value. */
		w->closed++;
		w->cost += larger(SMOOTH_COST, 1 / (double)w->closed) *
			   ((1 - tail) * w->spent + windows_link_ns(w) - w->cost);
	}
	if (w->earned > 0)
		w->load += SMOOTH * (smaller(w->spent / w->earned, 100) - w->load);
}

void windows_closed(struct windows *w, uint64_t now_ns, uint64_t own_ns, uint64_t tail_ns)
{
	w->open = false;
	if (w->whole)
		w->whole_ns = now_ns + (uint64_t)(WHOLE_APART * (double)tail_ns);
	learn(w, now_ns, own_ns, (double)tail_ns / larger((double)(now_ns - w->opened_ns), 1));
	plan_length(w);
	w->closed_ns = now_ns;
	w->gap_drawn = draw(w, DRAW_LEAST, DRAW_MOST);
	w->next_ns = now_ns + (uint64_t)gap_ns(w);
}

bool windows_affords(const struct windows *w)
{
	return w->budget >= -AHEAD_S * NS * income(w);
}

uint64_t windows_due(const struct windows *w, uint64_t now_ns)
{
	double left;

	if (!w->open) {
		left = w->next_ns > now_ns ? (double)(w->next_ns - now_ns) : 0;
		return (uint64_t)larger(left, LOOK_MIN);
	}
	/* If no calls are made from now on: a late look costs the target all that its probes take until then. */
	left = (double)w->length_ns - shown(w, now_ns);
	/* If all time until then went to probes, it would be half of a window's share. */
	if (!w->length_ns)
		left = share_of_window(w) / 2;
	return (uint64_t)larger(smaller(left, LOOK_MAX), LOOK_MIN);
}
