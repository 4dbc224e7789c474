/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was observed of a target whose probes are limited, per node of its tree. Pure; no I/O, no clock.
 *
 * - Stretches: as long as the limit allows it, every call is traced. Calls and times count as they are.
 * - Windows: else, every call is traced for a moment, and that stands for the time around it. Its calls
 *   are weighted. Its times are not used, because probes disturb them.
 * - Samples show all other times.
 *
 * evidence.c explains weights and errors.
 */
#ifndef PYPROF_ACCURACY_EVIDENCE_H
#define PYPROF_ACCURACY_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cost.h"
#include "stats/calltree.h"

/* Figures of stretches, exact. Samples: the time in ns that they stand for */
struct evidence_exact {
	uint64_t calls, yields, cpu, samples;
};

/* What a window shows of a node, unweighted */
struct evidence_seen {
	double calls, yields, cpu, taken;
};

/* A node. Windows' figures are weighted sums; cpu: with the probes' part, which is taken. */
struct evidence_node {
	struct evidence_exact exact,
		heavy; /* light ones; others, of which only calls and yields count */
	double calls, yields, cpu, taken;
	uint64_t samples;	  /* ns that samples outside of light stretches stand for */
	uint64_t within;	  /* the same, in the present stretch */
	struct evidence_seen now; /* in the last window; 0 if it is not there */
	uint32_t last;		  /* 1 + index in evidence_last.nodes; 0: it is not */
	struct cost_ends callees; /* while a window is folded */
};

/*
 * The last window, unweighted. It also represents half of the gap after it, whose length is known only when the
 * next window begins. So its figures are kept, and its weight in the sums can be raised.
 */
struct evidence_last {
	uint32_t *nodes, *funcs; /* those with figures, without duplicates */
	uint32_t n, nfuncs, cap, funcs_cap;
	double length; /* ns of the program's own time; 0: no window */
	double weight; /* so far: represented time / length */
	double cpu;    /* ns of all threads, without the probes' time */
	bool marked;   /* marks were counted */
	double calls, marks;
};

/* Sums over windows of z, z^2 and z x, weighted by the gaps that they represent: see evidence.c */
struct evidence_ratio {
	double sum, square, product;
};

/* Of a function's calls z; x: CPU time; marks, over windows in which they were counted */
struct evidence_func {
	double now; /* in the last window */
	struct evidence_ratio by_cpu, by_marks;
};

/* Sums over windows in which marks were counted */
struct evidence_marked {
	double kept;		     /* marks in stretches, whose calls are exact */
	double total;		     /* all others, in windows and gaps; 0: unknown */
	double all_marks, all_calls; /* in windows, weighted like calls of nodes */
	struct evidence_ratio calls; /* z: calls of all functions, x: marks */
	double marks, marks2;	     /* of marks and their squares, weighted likewise */
};

/* See calls.h. */
struct evidence_progress {
	bool on;	   /* marks are counted in windows */
	double now;	   /* marks in the current window */
	double shown;	   /* marks in windows, unweighted */
	double cpu_before; /* evidence.own_cpu when they began to be counted */
	struct evidence_marked marked;
};

struct evidence {
	struct evidence_node *nodes; /* by node of the tree */
	struct evidence_func *funcs; /* by function */
	uint32_t n, cap, nfuncs, funcs_cap;
	struct evidence_last last;

	bool partial;	  /* there was any time outside of stretches; figures are estimates */
	uint64_t samples; /* number of all samples */
	double gap_ns;	  /* after the last window, that no window represents yet */
	double own_cpu;	 /* the target's CPU clock without the probes' time, outside of stretches */
	double seen_cpu; /* CPU time in windows */
	double all_ns, all_cpu; /* time that windows represent, and their CPU time, weighted */
	uint64_t windows;	/* number of windows that represent more than themselves */
	double size, size2;	/* sums over them, of CPU time and its square */
	double calls;		/* of all functions in all windows, weighted */
	struct evidence_progress progress;
};

void evidence_deinit(struct evidence *e);
void evidence_clear(struct evidence *e);

/* No window was open for ns. */
void evidence_gap(struct evidence *e, uint64_t ns);
/* The target used ns of CPU time without probes, outside of stretches. */
void evidence_own_cpu(struct evidence *e, double ns);
/* The costs given to folds so far were wrong by this factor. */
void evidence_costs_change(struct evidence *e, double times);

/*
 * From now on, other marks are counted in windows, or none: the program does something else, so the earlier ones show
 * nothing of it. The gap so far is represented by the window before, if there is one.
 */
void evidence_count_marks(struct evidence *e, bool on);
/* A thread passes a mark in the current window or stretch. */
static inline void evidence_mark(struct evidence *e, bool stretch)
{
	if (stretch)
		e->progress.marked.kept++;
	else
		e->progress.now++;
}
/* The number of marks since they are counted, or since a clear, stretches included; 0: unknown */
void evidence_set_marks(struct evidence *e, uint64_t total);

/*
 * End a window, and move the tree's figures here. -ENOMEM: nothing has changed, and the next window includes this
 * one.
 */
struct evidence_window {
	double length_ns;	 /* what it shows of the program's own time */
	double cpu_ns;		 /* CPU time that the process used in it, at most */
	const struct cost *cost; /* of a hit, as measured; may be unknown */
	double times;		 /* hits took as many times as long */
};
int evidence_fold(struct evidence *e, struct calltree *tree, uint32_t nfuncs,
		  const struct evidence_window *given);
/*
 * The same for a stretch. light: its probes took so little that it shows the program's times; else samples
 * do. The time before it belongs to the window before. -ENOMEM as above.
 */
int evidence_keep(struct evidence *e, struct calltree *tree, bool light);

/* Add a sample at a node, which stands for ns, in a stretch or not. -ENOMEM: nothing has changed. */
int evidence_sample(struct evidence *e, struct calltree *tree, uint32_t node, uint64_t ns,
		    bool stretch);

bool evidence_has(const struct evidence *e, uint32_t node);
/* Before removing a node, add its figures to another node of the same path. -ENOMEM: they are lost. */
int evidence_move(struct evidence *e, struct calltree *tree, uint32_t from, uint32_t to);

#endif
