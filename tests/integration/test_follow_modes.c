// SPDX-License-Identifier: BSD-2-Clause
/*
 * Following children in the modes count and sample and in windows, with several interpreters: each
 * process's counts and CPU times against those that it knows itself, executing again, limits, and
 * children that end before they can be followed.
 */
#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "harness/counts.h"
#include "harness/patience.h"
#include "harness/process_tree.h"
#include "harness/test.h"
#include "accuracy/finish.h"
#include "stats/view.h"

static struct process_tree f;

#define RATE 997
/*
 * The number of standard errors allowed. 500 samples exceed that with a probability below 2e-8
 * (binomial), and 200 figures are compared.
 */
#define ERRORS 6
/* What the parts of burn() may differ by from what they are, as a part: its loops are not alike */
#define PARTS 0.08
/* What two readings of the same clock may differ by, as a part: the calls between them */
#define CLOCKS 0.02
/*
 * How much more samples of all processes may say than these have used: Poisson's error of 2000, and
 * ends
 */
#define MORE 0.15

struct burned {
	uint64_t rounds;
	double cpu; /* seconds */
};

/* Members a to b use CPU time, all at once; the sum is ret[0], as no member 0 takes part. */
static void burn(unsigned int ms, unsigned int a, unsigned int b,
		 struct burned ret[PROCESS_TREE_MAX])
{
	char line[128];
	size_t n = (size_t)snprintf(line, sizeof(line), "burn %u", ms);

	for (unsigned int i = a; i <= b; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, " %u", i);
	traced_say(&f.t, line);
	ret[0] = (struct burned){0};
	for (unsigned int i = a; i <= b; i++) {
		uint64_t us;

		cr_assert(sscanf(traced_answer(&f.t, "burned"), "%" SCNu64 " %" SCNu64,
				 &ret[i].rounds, &us) == 2);
		ret[i].cpu = (double)us / 1e6;
		ret[0].rounds += ret[i].rounds;
		ret[0].cpu += ret[i].cpu;
	}
}

/* Members 1 and 2 exist before the attach, 3 and 4 are forked later, 4 by 3. */
static void start_tree(const char *exe, struct mode_choice mode, unsigned int max_overhead)
{
	process_tree_start(&f, exe);
	f.t.mode = mode;
	f.t.max_overhead = max_overhead;
	process_tree_fork(&f, 0, 2);
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 1);
	process_tree_traced(&f, 1, 3);
	process_tree_fork(&f, 3, 1);
	process_tree_traced(&f, 1, 4);
}

/* The figures of one function in a snapshot. */
struct figures {
	double calls, calls_error, cpu, cpu_error, period;
};

static double error_of(const struct snapshot *s, const char *name, enum snapshot_figure figure)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, name) == 0)
			return snapshot_error(&s->funcs[i], figure);
	return -1;
}

static struct figures figures_of(pid_t pid, const char *name)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot_of(&f.t, pid);
	_cleanup_(view_freep) struct view *v = NULL;
	struct view_row row;

	assert_ok(snapshot_correct(s));
	assert_ok(view_build(s, NULL, &v));
	row = counts_named(v, name);
	return (struct figures){
		.calls = (double)row.ncalls,
		.calls_error = error_of(s, name, SNAPSHOT_CALLS),
		.cpu = (double)row.cum[SNAPSHOT_CPU] / 1e9,
		.cpu_error = error_of(s, name, SNAPSHOT_CUM_CPU) / 1e9,
		.period = (double)s->targets[0].estimate.period_ns / 1e9,
	};
}

/* What a hit takes on average, ns */
static double hit_of(const struct snapshot_target *t)
{
	return (t->cost.before[COST_ENTER] + t->cost.after[COST_ENTER] +
		t->cost.before[COST_LEAVE] + t->cost.after[COST_LEAVE]) /
	       2.0;
}

/* The functions of burn(), and the part of its CPU time that each takes. */
static const struct {
	const char *name;
	double part;
} parts[] = {{"one", 1.0 / 6}, {"two", 2.0 / 6}, {"three", 3.0 / 6}, {"burn", 1}};

static void check_parent(pid_t child, pid_t parent)
{
	struct session_status st = process_tree_status(&f, child);

	cr_assert_eq(st.parent, parent);
	cr_assert(st.fork_gap_ns > 0, "the time before its fork was followed is not reported");
}

/* Shares are within their errors. */
static void check_parts(pid_t pid, const struct figures *all)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		const struct figures g = figures_of(pid, parts[i].name);
		const double want = all->cpu * parts[i].part;

		fprintf(stderr, "  %d %-5s %.3f s +- %.3f, of burn() %.3f\n", (int)pid,
			parts[i].name, g.cpu, g.cpu_error, want);
		cr_assert(g.period > 0 && g.cpu_error > 0, "the error is not known");
		cr_assert(fabs(g.cpu - want) < ERRORS * g.cpu_error + 0.03 * want, "%s is off",
			  parts[i].name);
	}
}

/*
 * The samples of members 1 to 4. Some of the timers' interrupts do not come on a machine whose CPUs
 * are much in demand, no matter which process they belong to: so each member's part of all samples
 * is compared with its part of the CPU time. The samples of one vary less than those of a Poisson
 * process.
 */
static void check_members(const struct burned burned[PROCESS_TREE_MAX])
{
	struct figures g[5], sum = {0};

	for (unsigned int i = 1; i <= 4; i++) {
		g[i] = figures_of(f.members[i], "burn");
		sum.cpu += g[i].cpu;
	}
	cr_assert(sum.cpu > 0.5 * burned[0].cpu && sum.cpu < (1 + MORE) * burned[0].cpu,
		  "%.3f s of %.3f", sum.cpu, burned[0].cpu);
	for (unsigned int i = 1; i <= 4; i++) {
		const double want = sum.cpu * burned[i].cpu / burned[0].cpu;
		const double error = sqrt(want * g[i].period);

		fprintf(stderr, "  %d %.3f s of CPU time, estimated %.3f s, of all samples %.3f\n",
			(int)f.members[i], burned[i].cpu, g[i].cpu, want);
		cr_assert(fabs(g[i].cpu - want) < ERRORS * error, "member %u is off", i);
		check_parts(f.members[i], &g[i]);
	}
	g[0] = figures_of(0, "burn");
	check_parts(0, &g[0]);
	cr_assert(fabs(g[0].cpu - sum.cpu) < MORE * sum.cpu, "%.3f s, not %.3f", g[0].cpu, sum.cpu);
}

static void check_calls(pid_t pid, uint64_t rounds)
{
	for (size_t i = 0; i < 3; i++)
		cr_assert_eq((uint64_t)figures_of(pid, parts[i].name).calls, rounds, "%s of %d",
			     parts[i].name, (int)pid);
}

static void sampled(const char *exe)
{
	struct burned burned[PROCESS_TREE_MAX];

	start_tree(exe, (struct mode_choice){MODE_SAMPLE, RATE}, 0);
	/* Each process has its own timers, and no others. */
	traced_until_timers(&f.t, (unsigned int)sysconf(_SC_NPROCESSORS_ONLN));
	burn(PATIENCE_WHILE_MS, 1, 4, burned);
	check_members(burned);
	check_parent(f.members[4], f.members[3]);
	process_tree_finish(&f);
}

Test(follow_modes, samples_are_of_each_process)
{
	process_tree_everywhere(sampled);
}

static void counted(const char *exe)
{
	struct burned burned[PROCESS_TREE_MAX];

	start_tree(exe, (struct mode_choice){MODE_COUNT, 0}, 0);
	burn(PATIENCE_MOMENT_MS, 1, 4, burned);
	for (unsigned int i = 1; i <= 4; i++) {
		check_calls(f.members[i], burned[i].rounds);
		process_tree_ask(&f, "work", i, 100 + i, "worked");
		cr_assert_eq((uint64_t)figures_of(f.members[i], "work").calls, 100 + i);
	}
	check_calls(0, burned[0].rounds);
	check_calls(f.members[0], 0);
	process_tree_ask(&f, "end", 2, 0, "ended");
	process_tree_ended(&f, 2, 2);
	cr_assert_eq((uint64_t)figures_of(f.members[2], "work").calls, 102);
	cr_assert_eq((uint64_t)figures_of(0, "work").calls, 410, "what has ended is forgotten");
	check_parent(f.members[4], f.members[3]);
	process_tree_finish(&f);
}

Test(follow_modes, counts_are_of_each_process)
{
	process_tree_everywhere(counted);
}

static void counted_and_sampled(const char *exe)
{
	struct burned burned[PROCESS_TREE_MAX];

	start_tree(exe, (struct mode_choice){MODE_COUNT, RATE}, 0);
	burn(PATIENCE_WHILE_MS, 1, 4, burned);
	for (unsigned int i = 1; i <= 4; i++)
		check_calls(f.members[i], burned[i].rounds);
	check_calls(0, burned[0].rounds);
	for (unsigned int i = 1; i <= 4; i++) {
		const struct figures all = figures_of(f.members[i], "burn");

		for (size_t k = 0; k < 3; k++) {
			const struct figures g = figures_of(f.members[i], parts[k].name);

			cr_assert(g.cpu_error > 0);
			cr_assert(fabs(g.cpu - parts[k].part * all.cpu) <
					  ERRORS * g.cpu_error + 0.05 * all.cpu,
				  "%s of %d", parts[k].name, (int)f.members[i]);
		}
	}
	process_tree_finish(&f);
}

Test(follow_modes, counts_with_samples_are_of_each_process)
{
	process_tree_everywhere(counted_and_sampled);
}

/*
 * The children of a trace are sampled as it is, so that their times are corrected as well. What
 * burn() took is known from the kernel's clock. Each of the three functions it calls is slowed down
 * by the same two hits, so without a correction their parts are nearer to each other, the more so
 * the slower hits are.
 */
static void check_corrected(pid_t pid, const struct burned *b)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot_of(&f.t, pid);
	_cleanup_(view_freep) struct view *v = NULL;
	const struct figures all = figures_of(pid, "burn");
	const struct snapshot_target *t = &s->targets[0];
	double raw, hits, subtracted;

	assert_ok(view_build(s, NULL, &v));
	raw = (double)counts_named(v, "burn").cum[SNAPSHOT_CPU] / 1e9;
	cr_assert_eq(t->estimate.rate, 999);
	cr_assert_gt(t->estimate.samples + t->estimate.of_probes, 0);
	cr_assert(fabs(raw - b->cpu) < CLOCKS * b->cpu, "%.6f s, its own %.6f s", raw, b->cpu);
	check_calls(pid, b->rounds);
	hits = (double)t->events * hit_of(t) / 1e9;
	assert_ok(snapshot_correct(s));
	subtracted = (double)s->targets[0].subtracted[SNAPSHOT_CPU] / 1e9;
	fprintf(stderr, "  %d burn %.3f s, corrected %.3f s; hits take %.3f s, subtracted %.3f s\n",
		(int)pid, raw, all.cpu, hits, subtracted);
	cr_assert(all.cpu < raw && subtracted > hits / 3 && subtracted < 3 * hits);
	for (size_t i = 0; i < 3; i++) {
		const struct figures g = figures_of(pid, parts[i].name);
		const double want = parts[i].part * all.cpu;

		fprintf(stderr, "    %-5s %.3f s +- %.3f, of burn() %.3f\n", parts[i].name, g.cpu,
			g.cpu_error, want);
		/* Half of the hits of this part may be left, or subtracted twice. */
		cr_assert(fabs(g.cpu - want) <
				  ERRORS * fmax(0, g.cpu_error) + PARTS * want + hits / 6,
			  "%s is off", parts[i].name);
	}
}

static void traced(const char *exe)
{
	struct burned burned[PROCESS_TREE_MAX];

	start_tree(exe, (struct mode_choice){MODE_TRACE, TARGET_OPTS_RATE_AUTO}, 0);
	/* Each process has its own timers, and no others. */
	traced_until_timers(&f.t, (unsigned int)sysconf(_SC_NPROCESSORS_ONLN));
	burn(PATIENCE_WHILE_MS, 1, 4, burned);
	for (unsigned int i = 1; i <= 4; i++)
		check_corrected(f.members[i], &burned[i]);
	process_tree_finish(&f);
}

Test(follow_modes, traces_with_samples_are_of_each_process)
{
	process_tree_everywhere(traced);
}

/*
 * Probes take 3 to 4 % of the time of burn(), so the limit leaves most of it unseen. An idle process
 * has windows, too, which use up its limit, so members burn until they had some while busy: the begin of each burn()
 * is a stretch. Choosing marks on a busy machine can use up the limit of some seconds.
 */
#define BOUND	1
#define WINDOWS 12 /* with fewer, errors are not known */

static double percent_of(const struct snapshot_target *t, const struct burned *b)
{
	return 100 * (double)t->events * hit_of(t) / 1e9 / b->cpu;
}

/*
 * Windows that were closed late are paid for later: in the long run, hits take what the limit says.
 */
static bool is_within_bound(pid_t pid, const struct burned *b)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot_of(&f.t, pid);

	return percent_of(&s->targets[0], b) < 2 * BOUND;
}

static void burn_until_seen(struct burned sum[PROCESS_TREE_MAX])
{
	struct burned b[PROCESS_TREE_MAX];

	for (unsigned int i = 1; i <= 4; i++) {
		uint64_t before = process_tree_status(&f, f.members[i]).windows.n;

		do {
			cr_assert(!patience_over(),
				  "there are not enough windows, or too many hits");
			burn(PATIENCE_WHILE_MS, i, i, b);
			sum[i].rounds += b[i].rounds;
			sum[i].cpu += b[i].cpu;
		} while (process_tree_status(&f, f.members[i]).windows.n < before + WINDOWS ||
			 !is_within_bound(f.members[i], &sum[i]));
	}
}

/* What is known of each process is that process's: its CPU time, its samples, its calls. */
static void check_windows(pid_t pid, const struct burned *b)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot_of(&f.t, pid);
	const struct snapshot_windows *w = &s->targets[0].windows;
	const struct figures one = figures_of(pid, "one"), all = figures_of(pid, "burn");
	const double cpu = (double)w->all_cpu_ns / 1e9;
	const double period = (double)s->targets[0].estimate.period_ns / 1e9;
	const double sampled = (double)w->samples * period;

	fprintf(stderr, "  %d windows %" PRIu64 ", hits took %.2f %%\n", (int)pid, w->n,
		percent_of(&s->targets[0], b));
	cr_assert_eq(w->max_overhead, BOUND);
	cr_assert_gt(hit_of(&s->targets[0]), 0);
	fprintf(stderr,
		"    %.3f s of CPU time, known %.3f, sampled %.3f, burn() %.3f +- %.3f; %.0f "
		"calls, "
		"estimated %.0f +- %.0f\n",
		b->cpu, cpu, sampled, all.cpu, all.cpu_error, (double)b->rounds, one.calls,
		one.calls_error);
	cr_assert(w->sampled && w->seen_cpu_ns < w->all_cpu_ns);
	cr_assert(fabs(cpu - b->cpu) < 0.1 * b->cpu, "another process's CPU time");
	cr_assert(period >= 1e-3 && sampled > 0.5 * b->cpu && sampled < (1 + MORE) * b->cpu,
		  "they are taken all the time");
	cr_assert(fabs(all.cpu - b->cpu) < 0.25 * b->cpu, "it is all in burn()");
	cr_assert(all.cpu_error > 0 && one.calls_error > 0, "the errors are not known");
	cr_assert(fabs(one.calls - (double)b->rounds) <
			  ERRORS * one.calls_error + PARTS * (double)b->rounds,
		  "calls are off");
	check_parts(pid, &all);
}

static void in_windows(const char *exe)
{
	struct burned burned[PROCESS_TREE_MAX] = {0};

	start_tree(exe, (struct mode_choice){MODE_TRACE, TARGET_OPTS_RATE_AUTO}, BOUND);
	burn_until_seen(burned);
	for (unsigned int i = 1; i <= 4; i++)
		check_windows(f.members[i], &burned[i]);
	process_tree_finish(&f);
}

Test(follow_modes, windows_are_of_each_process)
{
	/* The same code opens windows, whatever the interpreter is. */
	in_windows(traced_newest().exe);
	check_no_leaks();
}

static bool two_are_over(struct traced *t, void *ctx)
{
	(void)t, (void)ctx;
	return process_tree_status(&f, f.t.pid).children.over_limit == 2;
}

static bool is_anew(struct traced *t, void *ctx)
{
	struct session_status st = process_tree_status(&f, f.members[*(unsigned int *)ctx]);

	(void)t;
	return st.state == SESSION_TRACING && st.execs == 1;
}

/* Its samples are there, and no others; of the timers' interrupts, some may not come. */
static void check_sampled(unsigned int member, double cpu)
{
	const struct figures g = figures_of(f.members[member], "burn");
	const double error = sqrt(cpu * g.period);

	cr_assert(g.cpu > cpu / 2 - ERRORS * error && g.cpu < cpu + ERRORS * error,
		  "%.3f s of member %u, not %.3f", g.cpu, member, cpu);
}

/* Executing the program again, and limits, in the modes that keep no stacks. */
static void again_in(struct mode_choice mode)
{
	struct burned before[PROCESS_TREE_MAX], after[PROCESS_TREE_MAX];
	struct figures g;

	process_tree_start(&f, traced_newest().exe);
	f.t.mode = mode;
	f.t.builtins = true;
	f.t.max_children = 2;
	traced_attach(&f.t);
	process_tree_fork(&f, 0, 2);
	process_tree_traced(&f, 1, 2);
	process_tree_fork(&f, 0, 2);
	traced_until(&f.t, two_are_over, NULL, "two that are over the limit");
	burn(PATIENCE_MOMENT_MS, 1, 1, before);
	process_tree_ask(&f, "again", 1, 0, "again");
	traced_until(&f.t, is_anew, &(unsigned int){1}, "the program anew");
	process_tree_ask(&f, "thread", 2, 0, "again");
	traced_until(&f.t, is_anew, &(unsigned int){2}, "the program anew");
	cr_assert(process_tree_status(&f, f.members[1]).exec_gap_ns > 0);
	burn(PATIENCE_MOMENT_MS, 1, 2, after);
	g = figures_of(f.members[1], "one");
	if (mode.mode == MODE_COUNT)
		cr_assert_eq((uint64_t)g.calls, before[1].rounds + after[1].rounds);
	if (mode.rate) {
		check_sampled(1, before[1].cpu + after[1].cpu);
		check_sampled(2, after[2].cpu);
	}
	process_tree_finish(&f);
}

Test(follow_modes, counting_the_same_program_again)
{
	again_in((struct mode_choice){MODE_COUNT, 0});
}

Test(follow_modes, sampling_the_same_program_again)
{
	again_in((struct mode_choice){MODE_SAMPLE, RATE});
}

#define BURST 40

static bool all_are_known(struct traced *t, void *ctx)
{
	struct snapshot_children c = process_tree_status(&f, f.t.pid).children;

	(void)t, (void)ctx;
	return c.followed + c.ended_first + c.failed + c.over_limit >= BURST;
}

static void at_once_in(struct mode_choice mode)
{
	struct session_status st;

	process_tree_start(&f, traced_newest().exe);
	f.t.mode = mode;
	traced_attach(&f.t);
	process_tree_ask(&f, "burst", BURST, 0, "burst");
	traced_until(&f.t, all_are_known, NULL, "news of all children");
	st = process_tree_status(&f, f.t.pid);
	cr_assert_eq(st.children.followed + st.children.ended_first, BURST,
		     "%" PRIu64 " and %" PRIu64, st.children.followed, st.children.ended_first);
	process_tree_finish(&f);
}

Test(follow_modes, children_that_end_at_once_while_counting)
{
	at_once_in((struct mode_choice){MODE_COUNT, 0});
}

Test(follow_modes, children_that_end_at_once_while_sampling)
{
	at_once_in((struct mode_choice){MODE_SAMPLE, RATE});
}
