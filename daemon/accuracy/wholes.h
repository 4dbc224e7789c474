/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls per call of the caller, from whole calls. A window cuts calls at both ends, so it shows too few
 * callees of those that it shows. Therefore, calls are only counted within an outermost call that began in the
 * window (or stretch) and has ended: all calls within it are whole. Pure.
 */
#ifndef PYPROF_ACCURACY_WHOLES_H
#define PYPROF_ACCURACY_WHOLES_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/snapshot.h"
#include "stack/thread.h"
#include "stats/calltree.h"

/* Numbers of calls of a node in whole calls of its parent, and of its own whole calls */
struct wholes_pair {
	uint64_t calls, ended;
};

struct wholes_node {
	struct snapshot_whole sums;
	struct wholes_pair open,
		window; /* in the outermost call that is open; in those that ended */
	uint32_t next;	/* in the list of the outermost call's nodes; 0: the last one */
	bool listed;
};

struct wholes {
	bool on;       /* calls are counted */
	bool admits;   /* outermost calls that begin now are */
	uint32_t open; /* number of outermost calls that have not ended */
	struct wholes_node *v;
	uint32_t n, cap;
	bool shown; /* a call has ended in the window */
};

void wholes_deinit(struct wholes *w);
/* Forgets all figures, after a drop of each thread. */
void wholes_clear(struct wholes *w);

/*
 * A thread calls the function of a node, or leaves it; depth: of its stack, with that call. drop: its calls
 * cannot be counted, as it has switched stacks, or the window ends. Out of memory, they are not.
 */
void wholes_enter(struct wholes *w, struct thread_whole *c, uint32_t node, uint32_t depth);
void wholes_leave(struct wholes *w, struct thread_whole *c, uint32_t node, uint32_t depth);
void wholes_drop(struct wholes *w, struct thread_whole *c);
/* The window has ended, after a drop of each thread. The tree lists the nodes that it has touched. */
void wholes_fold(struct wholes *w, const struct calltree *tree);
/* A node's figures are added to another one's. */
void wholes_move(struct wholes *w, uint32_t from, uint32_t to);

#endif
