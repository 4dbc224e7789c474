/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Estimates from windows: the weighted figures of windows, and the differences between them. At the
 * end of a window the calling-context tree's figures are moved here. Pure; estimate.c explains
 * weights and errors.
 */
#ifndef PYPROF_ESTIMATE_ESTIMATE_H
#define PYPROF_ESTIMATE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cost.h"
#include "estimate/fit.h"
#include "stats/calltree.h"
#include "stats/func.h"

/* A CCT node: weighted sums, not rounded. taken: the probes' part of cpu. */
struct estimate_node {
	double calls, yields, cpu, wait, taken;
	double samples; /* samples taken between windows */
	uint32_t last;	/* 1 + index in estimate_last.nodes; 0: not in the last window */
};

struct estimate_func; /* sums of a function over windows */

/* The last window, see estimate/estimate_priv.h. Figures are unweighted. */
struct estimate_last {
	struct estimate_last_node *nodes;
	struct estimate_last_func *funcs;
	uint32_t n, nfuncs, cap, funcs_cap;
	double length; /* ns of the program's own time; 0: no window */
	double weight; /* weight so far: represented time / length */
	double cpu, wait;
	double taken, expected; /* probes' time: as corrected, and from measured costs */
};

struct estimate {
	struct estimate_node *nodes; /* by tree node */
	uint8_t *outermost;	     /* by node: enum in estimate.c; whether no caller has the same
			     * function */
	struct estimate_scratch *scratch;
	uint32_t n, cap;
	struct estimate_func *funcs; /* by function */
	uint32_t *touched;	     /* functions of the current window */
	uint32_t nfuncs, funcs_cap, ntouched;
	struct estimate_last last;

	double gap_ns;		  /* gap after the last window that no window represents yet */
	double own_cpu;		  /* target's CPU clock without probes, in windows and gaps */
	double seen_cpu, all_cpu; /* CPU time in windows, and CPU time that windows represent */
	double all_ns;		  /* time that windows represent */
	double taken, expected;	  /* probes' time, weighted: as corrected, and from measured
				   * costs */
	uint64_t windows;	  /* number of windows that represent more than themselves */
	double size[2], size2[2]; /* sums of represented time and its square: CPU, wall */
	double length, length2;	  /* the same for elapsed time, whether threads run or not */
	double length_cpu;	  /* sum of elapsed time * CPU time */
	double samples;		  /* in all nodes */
};

void estimate_init(struct estimate *e);
void estimate_deinit(struct estimate *e);
void estimate_clear(struct estimate *e);

/* No window was open for ns. */
void estimate_gap(struct estimate *e, uint64_t ns);
/* The target used ns of CPU time without probes, in or between windows. */
void estimate_own_cpu(struct estimate *e, double ns);

/*
 * End a window that shows length_ns of the program's own time, and move the tree's figures here.
 * Hits cost `scale` times cost, which may be unknown; less if the window shows it. -ENOMEM: nothing
 * has changed, and the next window includes this one.
 */
int estimate_fold(struct estimate *e, struct calltree *tree, uint32_t nfuncs, uint64_t length_ns,
		  const struct cost *cost, double scale);

/* The last window does not represent the gap after it. */
void estimate_fold_end(struct estimate *e);

/* Add a sample at node, taken between windows. -ENOMEM: nothing has changed. */
int estimate_sample(struct estimate *e, const struct calltree *tree, uint32_t node);

/*
 * The estimates from windows, the tree's present figures, and samples. cost: as for
 * estimate_fold(). The inputs must not change while a result is used.
 */
struct estimate_result {
	const struct estimate *e;
	const struct calltree *tree;
	double rest;	     /* factor that makes windows add up to the target's CPU time */
	double counts;	     /* factor of counts for the same purpose: see result.c */
	double counts_error; /* relative error of counts: their own, and that shared by all */
	double cost_factor;  /* cost in all windows / given cost */
	struct fit fit;
	double systematic; /* relative error of windows' CPU time without probes */
	/* Set if there are samples: */
	struct estimate_reconciled *nodes;
	struct fit_row *rows;		 /* by function; the last one is outside Python */
	struct estimate_native *natives; /* by function; NULL: no C functions */
	uint32_t nfuncs;
};
/* funcs: identifies C functions; may be NULL. Returns 0 or -ENOMEM. */
int estimate_reconcile(const struct estimate *e, const struct calltree *tree, uint32_t nfuncs,
		       const struct funcs *funcs, const struct cost *cost,
		       struct estimate_result *ret);
void estimate_result_deinit(struct estimate_result *r);

/* A node's figures. They add up to the target's CPU time plus the probes' time at the cost in all
 * windows. Nonzero values never round to 0. */
struct estimate_figures {
	uint64_t calls, yields, self[SNAPSHOT_CLOCKS];
};
struct estimate_figures estimate_figures(const struct estimate_result *r, uint32_t node);
bool estimate_has(const struct estimate *e, uint32_t node);

/* Before removing a node, add its figures to another node of the same path. -ENOMEM: they are
 * lost. */
int estimate_move(struct estimate *e, const struct calltree *tree, uint32_t from, uint32_t to);

/* The variance of a function's figure; negative: unknown */
double estimate_variance(const struct estimate_result *r, uint32_t func,
			 enum snapshot_figure figure);

/* Multiply the expected cost so far, after costs changed by this factor. */
void estimate_costs_change(struct estimate *e, double times);

/* Returns whether there was any gap. */
bool estimate_sampled(const struct estimate *e);

#endif
