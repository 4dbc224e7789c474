// SPDX-License-Identifier: BSD-2-Clause
/* Facts: see facts.h. */
#include "clickhouse/facts.h"

#include <stddef.h>
#include <stdio.h>

#define AT(member) offsetof(struct snapshot_target, member)

static const struct {
	const char *name;
	size_t offset;
} numbers[] = {
	{"traced_ns", AT(traced_ns)},
	{"fork_gap_ns", AT(fork_gap_ns)},
	{"exec_gap_ns", AT(exec_gap_ns)},
	{"subtracted_cpu_ns", AT(subtracted[SNAPSHOT_CPU])},
	{"subtracted_wall_ns", AT(subtracted[SNAPSHOT_WALL])},
	{"clamped", AT(clamped)},
	{"children_followed", AT(children.followed)},
	{"children_over_limit", AT(children.over_limit)},
	{"children_ended_first", AT(children.ended_first)},
	{"children_failed", AT(children.failed)},
	{"samples", AT(estimate.samples)},
	{"samples_of_probes", AT(estimate.of_probes)},
	{"samples_before", AT(estimate.before)},
	{"windows", AT(windows.n)},
	{"windows_span_ns", AT(windows.span_ns)},
	{"windows_seen_cpu_ns", AT(windows.seen_cpu_ns)},
	{"windows_all_cpu_ns", AT(windows.all_cpu_ns)},
	{"windows_samples", AT(windows.samples)},
	{"windows_failed", AT(windows.failed)},
	{"waits_walks", AT(waits.walks)},
	{"gil_pairs_dropped_ns", AT(waits.pairs_dropped)},
};

#define NUMBERS ((unsigned int)(sizeof(numbers) / sizeof(numbers[0])))

static const char *const losses[PYP_LOSS_MAX] = {
#define PYP_X(name, text) [PYP_LOSS_##name] = #name,
	PYP_LOSSES(PYP_X)
#undef PYP_X
};

const struct fact_flag fact_flags[] = {
	{"corrected", AT(corrected), true},
	{"cost_known", AT(cost.known), true},
	{"misses_calls", AT(misses_calls), false},
	{"builtins", AT(builtins), false},
	{"follows", AT(follows), false},
	{"in_windows", AT(windows.sampled), false},
	{"waits_measured", AT(waits.measured), false},
	{"gil_known", AT(waits.gil_known), false},
	{"waits_walked", AT(waits.walked), false},
	{NULL, 0, false},
};

const char *const fact_variances[SNAPSHOT_FIGURES] = {
	[SNAPSHOT_CALLS] = "variance_calls",	    [SNAPSHOT_TOT_CPU] = "variance_self_cpu",
	[SNAPSHOT_TOT_WALL] = "variance_self_wall", [SNAPSHOT_CUM_CPU] = "variance_cum_cpu",
	[SNAPSHOT_CUM_WALL] = "variance_cum_wall",
};

const char *const fact_durations[SNAPSHOT_CLOCKS] = {"duration_cpu ", "duration_wall "};
const char *const fact_longest[SNAPSHOT_CLOCKS] = {"longest_cpu", "longest_wall"};

static unsigned int keyed(void)
{
	unsigned int n = 0;

	while (snapshot_facts[n].key)
		n++;
	return n;
}

unsigned int facts_count(void)
{
	return NUMBERS + keyed() + PYP_LOSS_MAX;
}

const char *fact_name(unsigned int i, char buf[FACT_NAME_MAX])
{
	unsigned int n = keyed();

	if (i < NUMBERS)
		return numbers[i].name;
	i -= NUMBERS;
	if (i < n)
		return snapshot_facts[i].key;
	snprintf(buf, FACT_NAME_MAX, "loss_%s", losses[i - n]);
	return buf;
}

uint64_t *fact_at(struct snapshot_target *t, unsigned int i)
{
	unsigned int n = keyed();

	if (i < NUMBERS)
		return (uint64_t *)((char *)t + numbers[i].offset);
	i -= NUMBERS;
	return i < n ? snapshot_fact(t, &snapshot_facts[i]) : &t->losses[i - n];
}

bool *fact_flag_at(struct snapshot_target *t, const struct fact_flag *flag)
{
	return (bool *)((char *)t + flag->offset);
}

const char *detail_name(unsigned int i, char buf[DETAIL_NAME_MAX])
{
	static const char *const names[DETAIL_COLUMNS] = {"yields",   "inflight", "min_cpu",
							  "min_wall", "max_cpu",  "max_wall"};

	if (i < DETAIL_COLUMNS)
		return names[i];
	i -= DETAIL_COLUMNS;
	return i < COLUMNS ? column_key((int)i, buf) : NULL;
}
