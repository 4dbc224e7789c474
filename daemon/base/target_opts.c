// SPDX-License-Identifier: BSD-2-Clause
/* How a target is observed: see target_opts.h. */
#include "base/target_opts.h"

#include <errno.h>
#include <string.h>

#include "base/counters.h"

#define FIELD(f) .offset = offsetof(struct target_opts, f)

const struct opt target_opt_table[] = {
	{"mode", 0, OPT_CHOICE, FIELD(mode.mode), "trace|count|sample",
	 "calls with times, within --max-overhead; call counts\nonly, of all calls; or estimates "
	 "from samples, at\nalmost no overhead",
	 .choices = mode_names, .initial = "trace", .key = "mode"},
	{"rate", 0, OPT_U32, FIELD(mode.rate), "HZ",
	 "samples per second; default: 999 with a trace, or\n"
	 "as many as its limit allows, 99 with --mode\nsample, none with --mode count; 0: none",
	 0, 9999, .key = "rate"},
	{"max-overhead", 0, OPT_U32, FIELD(max_overhead), "PCT",
	 "limit the overhead to PCT % of the target's CPU\n"
	 "time: if its calls cost more, they are traced in\n"
	 "windows, and their numbers are estimates",
	 1, 50, .initial = "10", .key = "max_overhead", .none = "0"},
	{"exact", 0, OPT_FLAG, FIELD(exact), NULL, "trace every call, whatever it costs: no limit",
	 .key = "exact"},
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
/* Of a trace, whose samples carry the times: hundreds of them in a second of CPU time. */
#define RATE_TRACE 999

uint32_t target_opts_limit(const struct target_opts *o)
{
	return o->exact || o->mode.mode != MODE_TRACE ? 0 : o->max_overhead;
}

uint32_t target_opts_rate(const struct target_opts *o)
{
	const uint32_t given = o->mode.rate == TARGET_OPTS_RATE_AUTO ? 0 : o->mode.rate;

	if (given)
		return given;
	if (o->mode.mode == MODE_SAMPLE)
		return RATE_ALONE;
	if (o->mode.mode == MODE_COUNT)
		return 0;
	/* A limited trace needs its samples. */
	return o->mode.rate || target_opts_limit(o) ? RATE_TRACE : 0;
}

void target_opts_init(struct target_opts *o)
{
	*o = (struct target_opts){.mode.rate = TARGET_OPTS_RATE_AUTO};
	for (const struct opt *row = target_opt_table; row->name; row++)
		if (row->initial)
			(void)opt_set(row, row->name, row->initial, o, NULL);
}

bool target_opts_asked(const struct target_opts_given *g)
{
	return TARGET_OPTS_HAS(g, mode.mode) || TARGET_OPTS_HAS(g, max_overhead) ||
	       TARGET_OPTS_HAS(g, exact);
}

int target_opts_set(struct target_opts_given *g, const struct opt *row, const char *text,
		    struct diag *diag)
{
	struct opt zero = *row;
	int r;

	if (row->none && strcmp(text, row->none) == 0)
		zero.min = 0;
	r = opt_set(&zero, row->key, text, &g->opts, diag);
	if (r < 0)
		return r;
	g->given |= UINT64_C(1) << (row - target_opt_table);
	g->opts.asked |= target_opts_asked(g);
	/* A request's limit overrides that the daemon has none. */
	if (TARGET_OPTS_HAS(g, max_overhead) && !TARGET_OPTS_HAS(g, exact))
		g->opts.exact = false;
	return 0;
}

void target_opts_not_light(struct target_opts_given *g)
{
	struct target_opts initial;

	if (!g->opts.light || !(target_opts_asked(g) || TARGET_OPTS_HAS(g, builtins) ||
				TARGET_OPTS_HAS(g, counters) || TARGET_OPTS_HAS(g, follow)))
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
static int check_bound(const struct target_opts_given *g, struct diag *diag)
{
	const struct target_opts *o = &g->opts;

	if (!TARGET_OPTS_HAS(g, max_overhead) || !o->max_overhead)
		return 0;
	if (TARGET_OPTS_HAS(g, exact) && o->exact)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "leave out one of them",
				"--exact lifts the limit that --max-overhead sets");
	if (o->mode.mode == MODE_TRACE && !o->counters)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"leave out --max-overhead, or --mode and --counters",
			"--max-overhead requires mode trace, without --counters");
}

int target_opts_check_given(const struct target_opts_given *g, struct diag *diag)
{
	const struct target_opts *o = &g->opts;

	if (TARGET_OPTS_HAS(g, mode.rate) && !o->mode.rate && o->mode.mode == MODE_SAMPLE)
		return diag_set(diag, -ERANGE, PYP_EXIT_USAGE, "leave out \"rate\"",
				"--mode sample takes a --rate of 1 to 9999 samples per second");
	if (TARGET_OPTS_HAS(g, exact) && o->exact && o->mode.mode != MODE_TRACE)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"leave out --exact, or use --mode trace",
				"--exact requires mode trace: --mode %s has no limit to lift",
				mode_names[o->mode.mode]);
	return check_bound(g, diag);
}

int target_opts_check(const struct target_opts *o, struct diag *diag)
{
	if (o->mode.mode != MODE_TRACE && o->counters & ~COUNTERS_MEMORY)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "leave out --counters",
				"resources other than memory are counted in mode trace only");
	if (!o->counters || !target_opts_limit(o))
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			o->counters & ~COUNTERS_MEMORY ? "add --exact"
						       : "add --exact, or --mode sample",
			"--counters requires that every call is traced, without a limit");
}
