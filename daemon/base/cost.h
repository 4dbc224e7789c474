/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probe cost: the time in nanoseconds that one hit takes from the thread, before and after the
 * event's time stamp is taken. verify/measure.c measures it, accuracy/finish.c subtracts it. All
 * constants about the cost of hits, marks and samples, and the model of the slowdown after hits,
 * are here.
 *
 * The cost varies: on a busy machine, hits can take a third longer for some seconds. The
 * probe-latency reference follows that: in the target, the BPF program measures the part from an
 * event's time stamp to its own end. The whole cost is proportional to it, so present cost =
 * measured cost * (reference now / reference then). (12 runs within a minute: an empty call's two
 * hits took 2267 to 3276 ns, which was 22.2 to 23.4 times the reference.)
 *
 * Code after a hit runs slower for a while, because the trap has evicted caches and branch
 * predictions. `after` includes the part of this that shows in a short function. (Hits before a
 * function of 0.7 us cost at most 1 ns more than those before one of 0.15 us, on three builds.)
 */
#ifndef PYPROF_BASE_COST_H
#define PYPROF_BASE_COST_H

#include <stdbool.h>
#include <stdint.h>

enum cost_kind { COST_ENTER, COST_LEAVE, COST_YIELD, COST_KINDS };

struct cost {
	bool known;
	uint32_t before[COST_KINDS], after[COST_KINDS];
	uint32_t latency_ps; /* probe-latency reference during the measurement, ps; 0: unknown */
};

/* The minimum number of reference measurements for a scale */
#define COST_LATENCIES 32u

/* Factor by which hits cost more now than when c was measured, given n reference measurements that
 * took latencies_ns in total. 1 if unknown. */
double cost_scale(const struct cost *c, uint64_t latencies_ns, uint64_t latencies);

/*
 * The estimate after another measurement. Measurements of one build, relative to the reference,
 * differ by some percent between processes, so the estimate moves by `part` (0 to 1) of the
 * difference. Either cost may be unknown.
 */
struct cost cost_learn(const struct cost *before, const struct cost *measured, double part);

/*
 * The cost that is assumed until it was measured; known. hit_ns: what a hit takes as far as known,
 * such as by the self-test; 0: nothing is known.
 */
struct cost cost_guess(double hit_ns);

/*
 * A hit that the kernel must single-step: an item of a generator took 14 and 24 us more on two
 * builds of 3.13
 */
#define COST_STEPPED_NS 14000.0

/*
 * Caches and branch predictors are also cold after a hit: an interval that takes x ns undisturbed
 * takes x + D * (1 - exp(-x / D)), where D is cost_cold(). cost_undisturbed() inverts this: the
 * undisturbed total of n intervals that took ns in total. times: factor on D. See
 * accuracy/solve.c.
 */
double cost_undisturbed(double cold_ns, double n, double ns, double times);
/* The total slowdown of n intervals that take ns undisturbed, and its derivative by ns */
double cost_cold_slowdown(double cold_ns, double n, double ns);
double cost_cold_slope(double cold_ns, double n, double ns);
/*
 * How far off that is: relative deviations from the mean of the cost of a function's hits, and so of all hits if a
 * program is in few functions; and of a function's slowdown (16 programs, 3.11.2).
 */
#define COST_APART  0.15
#define COST_DIFFER 0.4
/*
 * The standard error in ns of the slowdown by cold caches of n intervals that take ns undisturbed. It depends on how
 * much memory and code an interval uses: 1 us with two system calls took 3 us, 200 ns of arithmetic took 400 ns.
 */
double cost_cold_error(double cold_ns, double n, double ns);
/* Returns 0 if traps that cost hit_ns are usual ones, 1 if they are slow; between if neither is sure. */
double cost_slowness(double hit_ns);
/*
 * Where traps are slow, each interval takes that much longer in addition, ns, however short it is: the
 * hypervisor has also emptied the caches of address translation.
 */
double cost_each(double hit_ns);
/* D for hits that cost hit_ns each, ns. Linear, so it also applies to the cost of many hits. */
double cost_cold(double hit_ns);

/*
 * The time in ns that a hit of a mark takes (session/marks.h), with the slowdown after it: a mark's program
 * does less than a site's. c: of sites, known
 */
double cost_mark(const struct cost *c);

/*
 * The time in ns that one sample takes from the process: an interrupt, the stack walk, and what is slower
 * afterwards. In a nested virtual machine, a timer that did nothing took 22 to 34 us of four programs,
 * at 1,000 and at 4,000 Hz; other machines need less.
 */
#define COST_SAMPLE_NS 30000u

/* The time in ns that a hit of this kind takes, in all. */
static inline double cost_hit(const struct cost *c, enum cost_kind kind)
{
	return (double)c->before[kind] + c->after[kind];
}

static inline double cost_enter(const struct cost *c)
{
	return cost_hit(c, COST_ENTER);
}

/* Numbers of events of a context. instants: calls of C functions without an end event */
struct cost_ends {
	uint64_t calls, leaves, yields, instants;
};

/*
 * Returns the probes' part of a context's own time, ns, by its own events and by those of its callees. They
 * are as if of the context's callees if it has no events of its own (`own` twice).
 */
uint64_t cost_taken(const struct cost *c, const struct cost_ends *own,
		    const struct cost_ends *callees);

/* c with all costs multiplied by scale. latency_ps stays: it belongs to the original measurement. */
struct cost cost_scaled(const struct cost *c, double scale);

#endif
