/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls per call of the caller: how many calls of a function one call of another function makes.
 *
 * If every call of a target was seen, this is the quotient of two counts. Windows cut calls short, so
 * there only whole calls count (struct snapshot_whole): a ratio of sums over windows, with its standard
 * error. Evidence of several contexts adds up; their deviations are taken as independent. A function that
 * calls itself is divided by all its calls, recursive ones included. Pure.
 */
#ifndef PYPROF_STATS_PER_CALL_H
#define PYPROF_STATS_PER_CALL_H

#include "snapshot/snapshot.h"

struct per_call {
	double calls; /* negative: unknown */
	double error; /* standard error; 0: every call of the caller counts, or all make as many */
};

/* What some contexts show, as callers of others or as callees. */
struct per_call_evidence {
	uint64_t exact;		     /* calls in targets all of whose calls were seen */
	uint64_t windowed;	     /* calls in targets that were seen in windows: an estimate */
	struct snapshot_whole whole; /* of the latter */
};

/* How the calls of a thread are known: all of them, from windows, or not at all (samples). */
enum per_call_source { PER_CALL_NONE, PER_CALL_EXACT, PER_CALL_WINDOWS };
enum per_call_source per_call_source(const struct snapshot *s, uint32_t thread);

/* Adds a context; source: that of its thread. */
void per_call_add(struct per_call_evidence *to, const struct snapshot *s, uint32_t node,
		  enum per_call_source source);
/* Adds the evidence of other contexts. */
void per_call_merge(struct per_call_evidence *to, const struct per_call_evidence *e);

/* Returns the number of windows of the targets with this pid (0: of all). */
uint64_t per_call_windows(const struct snapshot *s, uint32_t pid);

/*
 * callee: contexts that are called by contexts of the caller; caller: all contexts of it. Unknown without
 * calls, if one window has nearly all whole calls of the caller, and if some targets were seen in windows and
 * others all the time.
 */
struct per_call per_call_of(const struct per_call_evidence *callee,
			    const struct per_call_evidence *caller, uint64_t windows);

/*
 * Adds up the contexts of s by node of another tree: into[i] is the node (below n) of context i,
 * SNAPSHOT_NONE: left out; into NULL: i itself. Contexts of mode count have no evidence here, because
 * their callers' contexts are unknown. Returns an array of n, which the caller frees; NULL: out of memory.
 */
struct per_call_evidence *per_call_contexts(const struct snapshot *s, const uint32_t *into,
					    uint32_t n);

#endif
