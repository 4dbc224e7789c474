/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What continuous mode may cost: a share of one core for the whole machine. Looking at new processes
 * is paid from savings; if samples cost too much, fewer are taken. Plain data, pure.
 */
#ifndef PYPROF_CONTINUOUS_BUDGET_H
#define PYPROF_CONTINUOUS_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_SHARE	0.005
#define BUDGET_FIRST_NS 20000000000ull /* of CPU time: what the first scan may take */
#define BUDGET_SAVE_NS	5000000000ull  /* what can be saved later */
#define BUDGET_TURN_NS	30000000000ull /* the time over which samples are judged */
#define BUDGET_SKIP_MAX 64u

struct budget {
	double share;		 /* of a core */
	double saved_ns;	 /* CPU time that may be spent at once; negative: a debt */
	uint64_t now_ns, cpu_ns; /* at the last update */
	uint64_t turn_ns, turn_cpu_ns;
	uint64_t turn_sampling_ns; /* spent on samples and intervals, at the turn */
	uint32_t skip;		   /* one of so many samples is taken; 1: all */
	double used;		   /* share of a core over the last turn */
	uint64_t lowered;	   /* times that the rate was lowered */
	/* see budget_own() */
	uint64_t all_ns, own_ns, others_ns;
	bool others;
};

void budget_init(struct budget *b, double share, uint64_t now_ns, uint64_t cpu_ns);

/*
 * The CPU time that counts, of all that the daemon used so far: while it also observes what clients asked for
 * (others: it does so from now on), only the part that is known to be its own, own_ns. Otherwise a client's
 * trace would use up the savings for new processes.
 */
uint64_t budget_own(struct budget *b, uint64_t all_ns, uint64_t own_ns, bool others);

/*
 * now_ns: CLOCK_MONOTONIC. cpu_ns: CPU time used so far, all of it. sampling_ns: the part of it that
 * depends on the number of samples. Returns whether `skip` has changed.
 */
bool budget_update(struct budget *b, uint64_t now_ns, uint64_t cpu_ns, uint64_t sampling_ns);

/* May another process be looked at now? */
bool budget_allows(const struct budget *b);

#endif
