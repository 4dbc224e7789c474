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
	bool marked; /* marks were counted */
	double calls, marks;
	double missed;		/* calls: see estimate.c */
	double taken, expected; /* probes' time: as corrected, and from measured costs */
};

/* Sums over windows in which marks were counted, of calls c of all functions and marks m. */
struct estimate_marked {
	double lost;	 /* time in ns without windows before these marks were counted */
	double guessed;	 /* marks in that time, if it was like the one after it */
	bool had_window; /* before that time; then: */
	double before;	 /* calls in that time if it was like that window; not scaled */
	double between;	 /* in sums: the part of `guessed` with a window before it */
	double total;	 /* marks in all, in windows and gaps; 0: unknown */
	double all_marks, all_calls; /* in windows, weighted like calls of nodes */
	double calls, marks;	     /* weighted by the gaps that windows represent: */
	double c2, m2, cm;	     /* sums of c^2, m^2, c m */
	double cpu;		     /* weighted CPU time of these windows: M, see estimate.c */
	double cpu2, c_cpu;	     /* sums of M^2, c M */
};

/* See estimate/progress.h. */
struct estimate_progress {
	bool on;	   /* marks are counted in windows */
	double now;	   /* marks in the current window */
	double shown;	   /* marks in windows, unweighted */
	double shown_with; /* calls in these windows, unweighted */
	struct estimate_marked marked;
	struct estimate_marked done; /* the same of earlier marks, in calls instead of marks */
	double shown_before;	     /* earlier marks in windows, unweighted */
	double shown_without;	     /* calls in windows without marks, unweighted */
	double lost; /* time in ns without windows and without usable marks after it */
	bool has_rate;
	double rate; /* calls per ns of the last window */
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
	double calls;		  /* of all functions in all windows, weighted */
	double missed;		  /* the same of calls that slow traps may have kept out */
	double length, length2;	  /* the same for elapsed time, whether threads run or not */
	double length_cpu;	  /* sum of elapsed time * CPU time */
	double samples;		  /* in all nodes */
	struct estimate_progress progress;
};

void estimate_init(struct estimate *e);
void estimate_deinit(struct estimate *e);
void estimate_clear(struct estimate *e);

/* No window was open for ns. */
void estimate_gap(struct estimate *e, uint64_t ns);
/* The target used ns of CPU time without probes, in or between windows. */
void estimate_own_cpu(struct estimate *e, double ns);

/*
 * From now on, other marks are counted in windows, or none. Set the number of the earlier ones before. The
 * gap so far is not represented by windows that follow, nor its last unlike_ns by those before, as the
 * program does something else then.
 */
void estimate_count_marks(struct estimate *e, bool on, uint64_t unlike_ns);
/* A thread passes a mark in the current window. */
static inline void estimate_mark(struct estimate *e)
{
	e->progress.now++;
}
/*
 * The number of marks since they are counted, or since estimate_clear; 0: unknown. per_ns: their rate in
 * the beginning, which is taken for that of the time without windows before.
 */
void estimate_set_marks(struct estimate *e, uint64_t total, double per_ns);

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
	bool by_marks;	     /* counts are scaled by marks */
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
