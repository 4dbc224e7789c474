// SPDX-License-Identifier: BSD-2-Clause
/* How a target is observed: see target_opts.h. */
#include "base/target_opts.h"

#include <errno.h>
#include <string.h>

#include "base/counters.h"

#define FIELD(f) .offset = offsetof(struct target_opts, f)

const struct opt target_opt_table[] = {
	{"mode", 0, OPT_CHOICE, FIELD(mode.mode), "trace|count|sample",
	 "all calls with times; call counts only, at half\nthe overhead; or estimates from "
	 "samples, at "
	 "almost\nno overhead",
	 .choices = mode_names, .initial = "trace", .key = "mode"},
	{"rate", 0, OPT_U32, FIELD(mode.rate), "HZ",
	 "samples per second, 0: none; default: 99 with --mode\nsample, 199 with --max-overhead, "
	 "none with --mode\n"
	 "count, 999 with a trace, to correct its times",
	 0, 9999, .key = "rate"},
	{"max-overhead", 0, OPT_U32, FIELD(max_overhead), "PCT",
	 "limit probe overhead to PCT % of the target's CPU\n"
	 "time: traces in windows, figures are estimates",
	 1, 50, .key = "max_overhead", .none = "0"},
	{"stop-above", 0, OPT_U32, FIELD(stop_above), "PCT",
	 "stop recording if probe overhead exceeds PCT % of\nthe target's CPU time for 10 seconds",
	 1, 10000, .key = "stop_above", .none = "0"},
	{"builtins", 0, OPT_FLAG, FIELD(builtins), NULL,
	 "also trace, count or sample functions written in C", .key = "builtins"},
	{"counters", 0, OPT_COUNTERS, FIELD(counters), "LIST",
	 "resources to count per function: switches, faults,\nio, all, or single names; memory",
	 .key = "counters"},
	{"follow-children", 0, OPT_FLAG, FIELD(follow), NULL,
	 "also observe forked children and their children", .key = "follow_children"},
	{"no-verify", 0, OPT_OFF, FIELD(verify), NULL,
	 "skip the self-test of interpreters that were not\ntested before", .initial = "true",
	 .key = "verify"},
	{"ring-size", 0, OPT_POW2, FIELD(ring_bytes), "BYTES",
	 "ring buffer per process, rounded up to a power of\ntwo", UINT64_C(64) << 10,
	 UINT64_C(1) << 30, .initial = "16M", .key = "ring_size"},
	{NULL},
};

bool target_opts_has(const struct target_opts_given *g, size_t offset)
{
	for (const struct opt *o = target_opt_table; o->name; o++)
		if (o->offset == offset)
			return g->given >> (o - target_opt_table) & 1;
	return false;
}

/* Not 100 Hz, to avoid aliasing with programs that act every 10 ms. */
#define RATE_ALONE 99
/* Fast enough for hundreds of samples in a few seconds, at a fraction of a percent overhead. A
 * prime, to avoid aliasing with periodic activity. */
#define RATE_BETWEEN 199

/* While tracing, probes take most of the time, so the program itself is sampled more rarely. */
#define RATE_BESIDE 999

uint32_t target_opts_rate(const struct target_opts *o)
{
	const uint32_t given = o->mode.rate == TARGET_OPTS_RATE_AUTO ? 0 : o->mode.rate;

	if (given)
		return given;
	if (o->mode.mode == MODE_SAMPLE)
		return RATE_ALONE;
	if (o->max_overhead)
		return RATE_BETWEEN;
	return o->mode.mode == MODE_TRACE && o->mode.rate ? RATE_BESIDE : 0;
}

void target_opts_init(struct target_opts *o)
{
	*o = (struct target_opts){.mode.rate = TARGET_OPTS_RATE_AUTO};
	for (const struct opt *row = target_opt_table; row->name; row++)
		if (row->initial)
			(void)opt_set(row, row->name, row->initial, o, NULL);
}

int target_opts_set(struct target_opts_given *g, const struct opt *row, const char *text,
		    struct diag *diag)
{
	struct opt zero = *row;
	int r;

	if (row->none && strcmp(text, row->none) == 0)
		zero.min = 0;
	r = opt_set(&zero, row->key, text, &g->opts, diag);
	if (r == 0)
		g->given |= UINT64_C(1) << (row - target_opt_table);
	return r;
}

void target_opts_not_light(struct target_opts_given *g)
{
	struct target_opts initial;

	if (!g->opts.light || !(TARGET_OPTS_HAS(g, mode.mode) || TARGET_OPTS_HAS(g, max_overhead) ||
				TARGET_OPTS_HAS(g, builtins) || TARGET_OPTS_HAS(g, counters) ||
				TARGET_OPTS_HAS(g, follow)))
		return;
	target_opts_init(&initial);
	g->opts.light = false;
	if (!TARGET_OPTS_HAS(g, mode.mode))
		g->opts.mode.mode = initial.mode.mode;
	if (!TARGET_OPTS_HAS(g, mode.rate))
		g->opts.mode.rate = initial.mode.rate;
	if (!TARGET_OPTS_HAS(g, ring_bytes))
		g->opts.ring_bytes = initial.ring_bytes;
}

/* Windows exist in mode trace only, and resource counters are not estimated. */
static int check_bound(const struct target_opts *o, struct diag *diag)
{
	if (!o->max_overhead || (o->mode.mode == MODE_TRACE && !o->counters))
		return 0;
	return diag_set(
		diag, -EINVAL, PYP_EXIT_USAGE,
		"leave out --max-overhead, or --mode and --counters; \"max_overhead\": 0 in a "
		"request removes the daemon's limit",
		"--max-overhead requires mode trace, without --counters");
}

int target_opts_check_given(const struct target_opts_given *g, struct diag *diag)
{
	if (TARGET_OPTS_HAS(g, mode.rate) && !g->opts.mode.rate && g->opts.mode.mode == MODE_SAMPLE)
		return diag_set(diag, -ERANGE, PYP_EXIT_USAGE, "leave out \"rate\"",
				"--mode sample takes a --rate of 1 to 9999 samples per second");
	return TARGET_OPTS_HAS(g, max_overhead) ? check_bound(&g->opts, diag) : 0;
}

int target_opts_check(const struct target_opts *o, struct diag *diag)
{
	if (o->mode.mode != MODE_TRACE && o->counters & ~COUNTERS_MEMORY)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "leave out --counters",
				"resources other than memory are counted in mode trace only");
	return check_bound(o, diag);
}
