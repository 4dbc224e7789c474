/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a process has got, by marks (session/marks.h): they are chosen, counted, given up when they are not of
 * use any more, and chosen again. Windows need that (session/windowed_marks.c), and expensive traces
 * (session/pace.h).
 */
#ifndef PYPROF_SESSION_PROGRESS_H
#define PYPROF_SESSION_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"
#include "probe/probe.h"
#include "session/marks.h"

/*
 * Which opcodes a program executes rarely enough for marks. To find that out costs some thousand hits, so that
 * only one of the processes of a program does, and the others then know.
 */
struct opcodes {
	unsigned int users;
	uint64_t first; /* vaddr of the plan's first mark, and their number: */
	uint32_t all;
	const void *by; /* who finds it out now; NULL: nobody */
	bool known;
	uint8_t v[PYP_MARKS]; /* numbers of marks that are rare enough; n of them */
	uint32_t n;
};

/*
 * Returns the opcodes of this plan: o, or if these are others, or NULL, new ones with one user; o has lost a user then.
 * NULL: out of memory.
 */
struct opcodes *opcodes_of(struct opcodes *o, const struct plan *plan);
/* share: adds a user; NULL: none. free: a user has ended. */
struct opcodes *opcodes_share(struct opcodes *o);
void opcodes_free(struct opcodes *o);
/*
 * Returns whether `by` may find them out: nobody else is doing so, and they are not known. It has to call
 * learn, or drop if it will not: by itself, or when it ends.
 */
bool opcodes_ask(struct opcodes *o, const void *by);
void opcodes_learn(struct opcodes *o, const void *by, const uint8_t *v, uint32_t n);
void opcodes_drop(struct opcodes *o, const void *by);

struct progress {
	struct marks marks;
	struct opcodes *opcodes; /* borrowed; NULL: it finds out all by itself */
	uint64_t end_cpu_ns;	 /* CPU time at end_ns: */
	uint64_t end_ns;	 /* when they began to be detached; 0: they have not */
	uint64_t end_counts[PYP_MARKS];
	bool next;     /* marks.v is to be attached */
	bool unfit;    /* they are to be given up */
	uint64_t hits; /* of marks that are no longer attached, and while they were being attached */
};

/* Chooses marks, after progress_end(). `hits` are kept. */
void progress_begin(struct progress *g, struct opcodes *opcodes, const struct marks_opts *of);
/* Nothing will be chosen any more, or so soon; to be called before g->opcodes is freed. */
void progress_end(struct progress *g);
/*
 * Returns whether marks are being chosen, unless the process, which has used cpu_ns so far, has to use more CPU
 * time first.
 */
bool progress_chooses(const struct progress *g, uint64_t cpu_ns);
/*
 * To be called every PROGRESS_TURN_NS while it chooses. pid: the probe's process. affords: it has paid for
 * earlier hits, so that marks may be attached for another moment. Returns whether marks have been attached to stay.
 */
#define PROGRESS_TURN_NS UINT64_C(500000)
bool progress_turn(struct progress *g, struct probe *p, pid_t pid, bool affords);
/* Attaches g->marks.v, and notes its counts. Returns false, with the state MARKS_NONE, if that fails. */
bool progress_attach(struct progress *g, struct probe *p, pid_t pid);
/* Returns whether the marks are to be given up, see marks_unfit(): from now on. */
bool progress_unfit(struct progress *g, struct probe *p, uint64_t cpu_ns);
/* Returns the number of hits of kept marks, since they were attached. p NULL: 0 */
uint64_t progress_hits(const struct progress *g, const struct probe *p);
/* Returns the time that all hits have taken so far, those of earlier marks included, in ns. */
double progress_ns(const struct progress *g, const struct probe *p);

#endif
