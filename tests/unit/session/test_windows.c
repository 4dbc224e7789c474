// SPDX-License-Identifier: BSD-2-Clause
/*
 * When to watch, on programs that are simulated: so much of their own time goes by, and in a window
 * so many probes are run into meanwhile. The bound has to hold, windows have to be a fair sample, and
 * what is cheap enough has to be watched all the time.
 */
#include <math.h>

#include "harness/test.h"
#include "session/windows.h"

#define NS	1000000000ull
#define LOOK	1000000ull /* the simulated daemon looks at least this often */
#define LINK_NS 400000.0
#define LEAST	0.005 /* probes may take that part of one CPU, however little the target uses */

/* A program: what probes take per ns of its own time, at each moment of that time. */
struct program {
	double (*density)(double own_ns);
	double cpus;		       /* that it uses itself, on average: */
	double (*uses)(double own_ns); /* at each moment; NULL: always as many */
};

struct sim {
	struct windows w;
	double now, own, cpu, probes, links, seen;
	unsigned int windows;
	double starts[8]; /* by eighth of a period */
	double period;
	double step;
	double shown; /* by the window that is open: no more than its length counts */
	double tail;  /* for how long calls in a whole window last after its end, ns */
	double spent, most_spent,
		all_spent; /* by probes: in the present window; most and all in windows */
	double parts[2];   /* of what windows have shown of bursts: their first and second halves */
};

/* 0.5 ms of calls, then nothing for 20 ms. */
#define BURST 500e3
#define WAIT  20e6
static bool is_in_burst(double own)
{
	return fmod(own, BURST + WAIT) < BURST;
}

static double calls_and_waits(double own)
{
	return is_in_burst(own) ? 5 : 0;
}

static double runs_and_waits(double own)
{
	return is_in_burst(own) ? 1 : 0;
}

static double step(struct sim *s, const struct program *p, double ns)
{
	/* In a window the program's time is stretched by the probes' part. */
	double density = s->w.open ? p->density(s->own) : 0;
	double cpus = p->uses ? p->uses(s->own) : p->cpus;
	double own = ns / (1 + density * cpus);

	s->shown += own;
	if (s->w.open && is_in_burst(s->own) && s->shown < (double)s->w.length_ns)
		s->parts[fmod(s->own, BURST + WAIT) >= BURST / 2] += own;
	s->now += ns;
	s->own += own;
	s->probes += own * density * cpus;
	s->cpu += own * cpus + own * density * cpus;
	s->seen += s->w.open ? own : 0;
	return own;
}

/* An interrupt takes nothing of a program that does not run just then. */
static double link_ns(const struct program *p)
{
	return LINK_NS * fmin(p->cpus, 1);
}

/* Whether calls that began in the open window go on. */
static bool lasts(const struct sim *s)
{
	return s->w.open && s->w.whole && s->w.length_ns && s->tail > 0 &&
	       s->now - (double)s->w.opened_ns < (double)s->w.length_ns + s->tail;
}

static void decide(struct sim *s, const struct program *p)
{
	windows_account(&s->w, (uint64_t)s->now, (uint64_t)s->cpu, (uint64_t)s->probes);
	switch (windows_decide(&s->w, (uint64_t)s->now, (struct windows_shown){false, lasts(s)})) {
	case WINDOWS_OPEN:
		if (s->period > 0)
			s->starts[(size_t)(fmod(s->own, s->period) / s->period * 8)]++;
		s->cpu += link_ns(p);
		s->links += link_ns(p);
		s->windows++;
		s->shown = 0;
		s->spent = s->probes;
		windows_opened(&s->w, (uint64_t)s->now);
		cr_assert_leq(s->w.length_ns, WINDOWS_LONGEST_MS * UINT64_C(1000000));
		break;
	case WINDOWS_CLOSE:
		s->spent = s->probes - s->spent;
		s->all_spent += s->w.length_ns ? s->spent : 0;
		if (s->w.length_ns && s->spent > s->most_spent)
			s->most_spent = s->spent;
		windows_closed(&s->w, (uint64_t)s->now, 0,
			       s->w.whole && s->w.length_ns ? (uint64_t)s->tail : 0);
		break;
	case WINDOWS_CUT:
	case WINDOWS_GO_ON:
		break;
	}
}

/* late: the daemon comes that much too late, each time. */
static void run(struct sim *s, const struct program *p, double seconds, double late)
{
	double end = s->now + seconds * (double)NS;

	while (s->now < end) {
		uint64_t due;

		decide(s, p);
		due = windows_due(&s->w, (uint64_t)s->now);
		/* In small steps: density may change meanwhile. */
		for (double left = (double)(due < LOOK ? due : LOOK) + late; left > 0;
		     left -= s->step)
			step(s, p, left < s->step ? left : s->step);
	}
}

static void start(struct sim *s, unsigned int percent, uint64_t seed)
{
	*s = (struct sim){.now = (double)NS, .step = 1e5};
	windows_init(&s->w, percent, LINK_NS, 1, seed);
}

/* What probes took, as a share of what the program did itself. */
static double overhead(const struct sim *s, const struct program *p)
{
	return (s->probes + s->links) / (s->own * p->cpus);
}

static double always_heavy(double own)
{
	(void)own;
	return 10;
}

static double medium(double own)
{
	(void)own;
	return 1.5;
}

static double light(double own)
{
	(void)own;
	return 0.01;
}

static double idle(double own)
{
	(void)own;
	return 0;
}

/* 200 ms of calls, 200 ms of loops, over and over. */
#define PERIOD 400e6
static double phases(double own)
{
	return fmod(own, PERIOD) < PERIOD / 2 ? 4 : 0.02;
}

/* 1 s of calls after 3 s of loops. */
static double bursts(double own)
{
	return fmod(own, 4e9) < 3e9 ? 0.02 : 8;
}

Test(windows, holds_the_bound)
{
	static const unsigned int bounds[] = {1, 2, 5, 10, 20, 50};
	static const struct program programs[] = {
		{always_heavy, 1}, {medium, 1}, {phases, 1}, {always_heavy, 4}, {medium, 0.1}};

	for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++)
		for (size_t k = 0; k < sizeof(programs) / sizeof(*programs); k++) {
			double bound = fmax(bounds[i] / 100.0, LEAST / programs[k].cpus), got;
			struct sim s;

			start(&s, bounds[i], 17 * i + k);
			run(&s, &programs[k], 60, 0);
			got = overhead(&s, &programs[k]);
			cr_assert(got < 1.15 * bound, "%u%%, program %zu: %.2f%%", bounds[i], k,
				  100 * got);
			/* Ten windows per second may take 1.8 ms of each CPU. */
			cr_assert(got > 0.5 * fmin(bound, 0.018 * fmax(1, 1 / programs[k].cpus)) ||
					  s.seen > 0.95 * s.own,
				  "%u%%, program %zu: only %.2f%%", bounds[i], k, 100 * got);
			cr_assert(s.windows > 20 || s.seen > 0.95 * s.own, "%u windows", s.windows);
		}
	check_no_leaks();
}

/* From the first second on. */
#define SPAN 20 /* of 100 ms */
Test(windows, holds_the_bound_over_any_two_seconds)
{
	static const unsigned int bounds[] = {2, 5, 10, 20};
	static const struct program programs[] = {
		{always_heavy, 1}, {medium, 1}, {phases, 1}, {bursts, 1}, {always_heavy, 4}};
	double taken[601] = {0}, own[601] = {0};

	for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++)
		for (size_t k = 0; k < sizeof(programs) / sizeof(*programs); k++) {
			unsigned int over = 0;
			struct sim s;

			start(&s, bounds[i], 17 * i + k);
			for (size_t t = 1; t <= 600; t++) {
				run(&s, &programs[k], 0.1, 0);
				taken[t] = s.probes + s.links;
				own[t] = s.own * programs[k].cpus;
			}
			for (size_t t = SPAN; t <= 600; t++)
				over += taken[t] - taken[t - SPAN] >
					1.3 * bounds[i] / 100 * (own[t] - own[t - SPAN]);
			cr_assert(over < 0.05 * 600, "%u%%, program %zu: in %u of 581 spans",
				  bounds[i], k, over);
		}
	check_no_leaks();
}

/* A daemon that comes 30 ms late each time pays for it with fewer windows. */
Test(windows, holds_it_when_late)
{
	const struct program p = {always_heavy, 1};
	struct sim s;

	start(&s, 5, 3);
	run(&s, &p, 60, 30e6);
	cr_assert(overhead(&s, &p) < 0.06, "%.2f%%", 100 * overhead(&s, &p));
	cr_assert(s.windows > 20);
	check_no_leaks();
}

Test(windows, watches_all_the_time)
{
	static const struct program programs[] = {{light, 1}, {idle, 1}, {light, 0.01}};

	for (size_t k = 0; k < sizeof(programs) / sizeof(*programs); k++) {
		struct sim s;

		start(&s, 5, k);
		run(&s, &programs[k], 60, 0);
		cr_assert(s.seen > 0.8 * s.own, "program %zu: %.1f%% seen", k,
			  100 * s.seen / s.own);
	}
	check_no_leaks();
}

/* A cheap program becomes expensive, and cheap again. */
Test(windows, adapts)
{
	const struct program cheap = {light, 1}, expensive = {always_heavy, 1};
	double probes, own, seen;
	struct sim s;

	start(&s, 5, 1);
	run(&s, &cheap, 10, 0);
	probes = s.probes + s.links;
	own = s.own;
	run(&s, &expensive, 20, 0);
	probes = s.probes + s.links - probes;
	own = s.own - own;
	cr_assert(probes < 0.07 * own, "%.2f%%", 100 * probes / own);
	run(&s, &cheap, 10, 0);
	seen = s.seen;
	own = s.own;
	run(&s, &cheap, 10, 0);
	cr_assert(s.seen - seen > 0.95 * (s.own - own), "it is watched all the time again");
	check_no_leaks();
}

/*
 * A window of a process that is mostly idle takes 30 ms, which the process would earn in minutes. It becomes
 * busy and is observed again within seconds.
 */
Test(windows, idle_process_becomes_busy)
{
	const struct program asleep = {idle, 0.001}, busy = {medium, 1};
	unsigned int before;
	struct sim s;

	start(&s, 1, 7);
	run(&s, &asleep, 10, 0);
	cr_assert(s.w.open);
	s.w.length_ns = LOOK; /* a planned end */
	s.now += 30e6;
	s.cpu += 30e6;
	s.probes += 30e6;
	run(&s, &asleep, 5, 0);
	before = s.windows;
	cr_assert(s.w.next_ns > (uint64_t)(s.now + 2e9), "the gap is long");
	run(&s, &busy, 10, 0);
	cr_assert(s.windows > before + 4, "%u windows", s.windows - before);
	cr_assert(s.probes + s.links < 0.03e9 + 0.013 * s.own, "the limit holds");
	check_no_leaks();
}

/*
 * A program that uses 2.4 % of a CPU earns 1.2 ms in a second, and a burst of its calls costs 2.5 ms.
 * Windows show the ends of bursts like their beginnings, and the bound holds.
 */
Test(windows, bursts_are_shown_to_their_ends)
{
	const struct program p = {calls_and_waits, BURST / (BURST + WAIT), runs_and_waits};
	double sum;
	struct sim s;

	start(&s, 5, 11);
	windows_init(&s.w, 5, LINK_NS, p.cpus, 11);
	s.step = 2e4;
	run(&s, &p, 600, 0);
	sum = s.parts[0] + s.parts[1];
	cr_assert(sum > 30 * BURST, "only %.1f bursts are seen", sum / BURST);
	cr_assert(s.parts[1] > 0.45 * sum, "%.3f of it are second halves", s.parts[1] / sum);
	cr_assert(overhead(&s, &p) < 1.1 * LEAST / p.cpus, "%.2f%%", 100 * overhead(&s, &p));
	check_no_leaks();
}

/* However much may be spent, a window does not delay a program by more than 4 ms per CPU, or twice that at worst. */
Test(windows, do_not_stall)
{
	static const struct program programs[] = {
		{always_heavy, 1}, {always_heavy, 4}, {medium, 0.5}};
	/* The shortest window of a program that only makes calls takes more than its share. */
	static const double ns[] = {2.5e6, 6.4e6, 1.4e6};

	for (size_t k = 0; k < sizeof(programs) / sizeof(*programs); k++) {
		const double most = ns[k];
		struct sim s;

		start(&s, 50, k);
		run(&s, &programs[k], 60, 0);
		cr_assert(s.windows > 200, "program %zu: %u windows", k, s.windows);
		cr_assert(s.all_spent / s.windows < most, "program %zu: %.1f ms", k,
			  s.all_spent / s.windows / 1e6);
		cr_assert(s.most_spent < 2.5 * most, "program %zu: %.1f ms", k, s.most_spent / 1e6);
		cr_assert(s.most_spent > 0.8 * most, "program %zu: %.1f ms", k, s.most_spent / 1e6);
	}
	check_no_leaks();
}

/*
 * An idle process: probes may take half a percent of a CPU all the same. Its bursts, of which windows show 5 ms of
 * probes' time at most, are not seen once in a minute only.
 */
Test(windows, idle_processes_are_observed)
{
	const struct program p = {calls_and_waits, 0.0005, NULL};
	double from, taken;
	struct sim s;

	start(&s, 1, 5);
	windows_init(&s.w, 1, LINK_NS, p.cpus, 5);
	run(&s, &p, 10, 0);
	for (int i = 0; i < 20; i++) {
		/* What a window has taken without the process's doing */
		s.cpu += 2e6;
		s.probes += 2e6;
		run(&s, &p, 1, 0);
	}
	from = s.now;
	taken = s.probes + s.links;
	cr_assert(taken < 1.3 * LEAST * (s.now - 1e9) + 2e6, "%.1f ms in %.0f s", taken / 1e6,
		  (s.now - 1e9) / 1e9);
	s.windows = 0;
	run(&s, &p, 30, 0);
	cr_assert(s.w.open || s.windows > 5, "%u windows in %.0f s", s.windows,
		  (s.now - from) / 1e9);
	check_no_leaks();
}

/* A whole window goes on for 20 ms. The next one is 3 s later, and the bound holds. */
Test(windows, whole_ones_are_rare)
{
	const struct program p = {always_heavy, 1};
	unsigned int whole = 0, windows = 0;
	uint64_t last = 0, opened = 0;
	struct sim s;

	start(&s, 10, 21);
	s.tail = 20e6;
	for (int i = 0; i < 60000; i++) {
		run(&s, &p, 0.001, 0);
		if (!s.w.open || s.w.opened_ns == opened)
			continue;
		opened = s.w.opened_ns;
		windows++;
		if (!s.w.whole)
			continue;
		cr_assert(!last || opened - last >= 3 * NS, "%.3f s",
			  (double)(opened - last) / 1e9);
		last = opened;
		whole++;
	}
	cr_assert(whole >= 12 && whole <= 20 && windows > 10 * whole, "%u of %u", whole, windows);
	cr_assert(overhead(&s, &p) < 1.15 * 0.1, "%.2f%%", 100 * overhead(&s, &p));
	/* Those whose calls have ended at once delay nothing. */
	s.tail = 0;
	run(&s, &p, 4, 0);
	for (int i = 0; i < 2000 && !s.w.open; i++)
		run(&s, &p, 0.001, 0);
	cr_assert(s.w.open && s.w.whole);
	check_no_leaks();
}

/* A window of 1 ms is open, and its probes have taken nothing so far. */
static struct windows open_window(uint64_t length_ns)
{
	struct windows w;

	windows_init(&w, 10, LINK_NS, 1, 1);
	windows_account(&w, NS, 0, 0);
	w.length_ns = length_ns;
	windows_opened(&w, NS);
	return w;
}

static enum windows_act act_at(struct windows *w, uint64_t ns, bool all, bool lasts)
{
	return windows_decide(w, NS + ns, (struct windows_shown){all, lasts});
}

/* As long as its calls last, but not for more than 500 ms longer than planned. */
Test(windows, whole_ones_end)
{
	struct windows w = open_window(1000000);

	cr_assert(w.whole);
	cr_assert_eq(act_at(&w, 900000, false, true), WINDOWS_GO_ON);
	cr_assert_eq(act_at(&w, 900000, false, false), WINDOWS_GO_ON);
	cr_assert_eq(act_at(&w, 1000000, false, false), WINDOWS_CLOSE);
	cr_assert_eq(act_at(&w, 1000000, false, true), WINDOWS_CUT);
	cr_assert_eq(act_at(&w, 501000000, false, true), WINDOWS_CUT);
	cr_assert_eq(act_at(&w, 501000001, false, true), WINDOWS_CLOSE);
	cr_assert_eq(act_at(&w, 900000, true, true), WINDOWS_CLOSE, "its records have ended it");
	/* The next one is 250 times as long later; others may come before. */
	windows_closed(&w, 2 * NS, 1000000, 10000000);
	w.length_ns = 1000000;
	windows_opened(&w, 2 * NS + 2499999999);
	cr_assert(!w.whole);
	windows_closed(&w, 2 * NS + 2499999999, 1000000, 0);
	w.length_ns = 1000000;
	windows_opened(&w, 2 * NS + 2500000000);
	cr_assert(w.whole);
	/* A stretch has no end to go on after. */
	w = open_window(0);
	cr_assert(!w.whole);
	check_no_leaks();
}

/* Windows begin at every part of a program that repeats itself. */
Test(windows, does_not_keep_step)
{
	const struct program p = {phases, 1};
	double sum = 0;
	struct sim s;

	start(&s, 5, 99);
	s.period = PERIOD;
	run(&s, &p, 300, 0);
	for (size_t i = 0; i < 8; i++)
		sum += s.starts[i];
	for (size_t i = 0; i < 8; i++)
		cr_assert(fabs(s.starts[i] / sum - 0.125) < 0.04, "eighth %zu: %.3f of %.0f", i,
			  s.starts[i] / sum, sum);
	check_no_leaks();
}

/* A start that fails repeatedly is not retried at once. */
Test(windows, failures_are_counted_and_tried_again_later_and_later)
{
	struct windows w;
	uint64_t now = 1000000000, tries = 0;

	windows_init(&w, 5, 1e5, 1, 1);
	windows_account(&w, now, 0, 0);
	for (uint64_t end = now + 10000000000ull; now < end; now += windows_due(&w, now))
		if (windows_decide(&w, now, (struct windows_shown){false, false}) == WINDOWS_OPEN) {
			tries++;
			windows_failed(&w, now);
		}
	cr_assert(tries == w.failed && tries > 5 && tries < 20, "%lu tries in 10 s", tries);
	windows_opened(&w, now);
	cr_assert(w.wait_ns == 0);
}

/* What probes are thought to take: in a program that only makes calls, more than the whole time. */
Test(windows, stay_short_if_costs_are_overestimated)
{
	const double density = 4, taken = 1.4;
	uint64_t opened = 0, longest = 0, now = NS;
	double cpu = 0, probes = 0;
	unsigned int n = 0;
	struct windows w;

	windows_init(&w, 5, LINK_NS, 1, 7);
	for (; now < 21 * NS; now += LOOK / 2) {
		windows_account(&w, now, (uint64_t)cpu, (uint64_t)probes);
		switch (windows_decide(&w, now, (struct windows_shown){false, false})) {
		case WINDOWS_OPEN:
			windows_opened(&w, now);
			opened = now;
			n++;
			break;
		case WINDOWS_CLOSE:
			windows_closed(&w, now, 0, 0);
			longest = now - opened > longest ? now - opened : longest;
			break;
		case WINDOWS_CUT:
		case WINDOWS_GO_ON:
			break;
		}
		cpu += (double)LOOK / 2;
		probes += w.open ? (double)LOOK / 2 * taken * density / (1 + density) : 0;
	}
	cr_assert_geq(n, 100u, "%u windows", n);
	cr_assert_leq(longest, 30000000u, "%lu ns", longest);
	cr_assert(probes < 1.3 * 0.05 * cpu, "%f of %f", probes, cpu);
}
