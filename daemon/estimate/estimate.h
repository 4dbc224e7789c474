/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Estimates from windows: what was seen in each window, weighted by what it stands for, and how much
 * windows differ. Works on a calling-context tree whose figures it takes over when a window ends.
 * Pure; see estimate.c for the weights and the errors.
 */
#ifndef PYPROF_ESTIMATE_ESTIMATE_H
#define PYPROF_ESTIMATE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cost.h"
#include "estimate/fit.h"
#include "stats/calltree.h"
#include "stats/func.h"

/* One context: the weighted sums, as yet unrounded. taken: the probes' part of cpu. */
struct estimate_node {
	double calls, yields, cpu, wait, taken;
	double samples; /* taken while nobody watched */
	uint32_t last;	/* its place among those of the last window, counted from 1; 0: none */
};

struct estimate_func; /* a function's sums over windows */

/* The last window: see estimate/last.h. Figures are as it showed them. */
struct estimate_last {
	struct estimate_last_node *nodes;
	struct estimate_last_func *funcs;
	uint32_t n, nfuncs, cap, funcs_cap;
	double length; /* ns of the program's own time; 0: there is none */
	double weight; /* what it stands for, as a multiple of that; so far */
	double cpu, wait;
	double taken, expected; /* by probes: as it must have been, and by their costs */
};

struct estimate {
	struct estimate_node *nodes; /* by node of the tree */
	uint8_t *outermost; /* by node: its function is not among its callers; see estimate.c */
	struct estimate_scratch *scratch;
	uint32_t n, cap;
	struct estimate_func *funcs; /* by function */
	uint32_t *touched;	     /* functions of the window at hand */
	uint32_t nfuncs, funcs_cap, ntouched;
	struct estimate_last last;

	double gap_ns;		  /* after the last window; no window stands for it yet */
	double own_cpu;		  /* the target's, in windows and gaps, as its CPU clock says */
	double seen_cpu, all_cpu; /* in windows, and what these stand for */
	double all_ns;		  /* the time that they stand for */
	double taken, expected;	  /* by probes, weighted: as it must have been, and by its costs */
	uint64_t windows;	  /* those that stand for more than themselves */
	double size[2], size2[2]; /* sums, and of squares, of what they stand for: CPU, wall */
	double length, length2;	  /* the same of the time that passes, whether threads run or not */
	double length_cpu;	  /* sum of its products with the CPU time */
	double samples;		  /* in all contexts */
};

void estimate_init(struct estimate *e);
void estimate_deinit(struct estimate *e);
void estimate_clear(struct estimate *e);

/* Nobody watched for so long. */
void estimate_gap(struct estimate *e, uint64_t ns);
/* The target used that CPU time for itself, whether it was watched or not. */
void estimate_own_cpu(struct estimate *e, double ns);

/*
 * A window that shows so much of the program's own time is over: take what is in the tree (its
 * figures are 0 afterwards). Hits cost `scale` times the costs, which may be not known; they are
 * taken to be lower where the window shows that they were. -ENOMEM: nothing has changed, the next
 * window takes it along.
 */
int estimate_fold(struct estimate *e, struct calltree *tree, uint32_t nfuncs, uint64_t length_ns,
		  const struct cost *cost, double scale);

/* The window that was taken last is not like what comes after it: of that gap it gets nothing. */
void estimate_fold_end(struct estimate *e);

/* While nobody watched, a moment of CPU time was spent there. -ENOMEM: nothing has changed. */
int estimate_sample(struct estimate *e, const struct calltree *tree, uint32_t node);

/*
 * What it comes to: what was folded, what is in the tree now, and samples. cost: as it was given to
 * folds. A result is of this moment: nothing may change while it is used.
 */
struct estimate_result {
	const struct estimate *e;
	const struct calltree *tree;
	double rest;	     /* what makes windows add up to what the target has used */
	double counts;	     /* what counts are scaled by, for the same purpose: see settle.c */
	double counts_error; /* what these do not share with CPU time, and what all share: relative */
	double cost_factor; /* the costs in all windows, as a share of the costs given */
	struct fit fit;
	double systematic; /* relative error of what windows' CPU time is without probes */
	/* Where there are samples. */
	struct estimate_settled *nodes;
	struct fit_row *rows;		 /* by function; the last one: outside Python */
	struct estimate_native *natives; /* by function; NULL: no C function was seen */
	uint32_t nfuncs;
};
/* funcs: which functions are C functions; NULL: none. */
int estimate_settle(const struct estimate *e, const struct calltree *tree, uint32_t nfuncs,
		    const struct funcs *funcs, const struct cost *cost,
		    struct estimate_result *ret);
void estimate_result_deinit(struct estimate_result *r);

/* A context's figures. They add up to what the target has used, probes' time at the costs in all
 * windows included. Rounded so that nothing that was seen becomes 0. */
struct estimate_figures {
	uint64_t calls, yields, self[SNAPSHOT_CLOCKS];
};
struct estimate_figures estimate_figures(const struct estimate_result *r, uint32_t node);
bool estimate_has(const struct estimate *e, uint32_t node);

/* The figures of a node that is about to be removed are added to those of another one, of the same
 * path. -ENOMEM: they are lost. */
int estimate_move(struct estimate *e, const struct calltree *tree, uint32_t from, uint32_t to);

/* The variance of a function's figure; negative: not known. */
double estimate_variance(const struct estimate_result *r, uint32_t func,
			 enum snapshot_figure figure);

/* What was expected so far, in terms of costs that are so many times what they were. */
void estimate_costs_change(struct estimate *e, double times);

/* Was there any gap at all? */
bool estimate_sampled(const struct estimate *e);

#endif
