/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to slow/. */
#ifndef PYPROF_SLOW_SLOW_PRIV_H
#define PYPROF_SLOW_SLOW_PRIV_H

#include "base/map.h"
#include "base/wait.h"
#include "profile/profile.h"
#include "slow/match.h"
#include "slow/slow.h"
#include "stack/watch.h"

#define SLOW_NODES_MAX	 4096u	    /* of one call; others are booked to their callers */
#define SLOW_FOLLOWED	 4096u	    /* calls that are followed at a time, suspended ones included */
#define SLOW_NODES_TOTAL (1u << 19) /* of the calls that are followed: 70 MB */
#define SLOW_STEPS_MAX	 16384u	    /* calls and returns of one call that are kept in order */
#define SLOW_STEPS_TOTAL (1u << 20) /* of the calls that are followed: 16 MB */
#define SLOW_KEPT_NODES	 (1u << 15) /* of all kept calls: the shortest ones give way */
#define SLOW_KEPT_STEPS	 (1u << 17) /* of all kept calls: later ones are kept without */
#define SLOW_FUNCS_MAX	 65536u	    /* whose names are kept */
#define SLOW_TEXT_MAX	 1024u	    /* bytes of a name */
#define SLOW_SOURCES_MAX 1024u

#define SLOW_NONE UINT32_MAX

/* A calling context inside a call. Node 0 is the call itself. */
struct slow_node {
	uint32_t func;	 /* the source's number while followed, an index in slow.funcs once kept */
	uint32_t parent; /* SLOW_NONE: node 0 */
	uint64_t calls;
	uint64_t self[SNAPSHOT_CLOCKS];
	uint64_t waits[WAITS];
};

/* A frame is pushed, or the top one is popped, inside a call. Times are in order. */
struct slow_step {
	uint64_t ts;
	uint32_t func; /* as a node's; SLOW_POP */
};
#define SLOW_POP (UINT32_MAX - 1)

/* A call that is followed or kept */
struct slow_call {
	uint32_t source, tid;
	char thread[32];
	uint64_t frame;
	uint64_t start_ns;	  /* CLOCK_MONOTONIC */
	uint64_t ts, cpu;	  /* up to which its nodes have their times */
	uint64_t suspended_ns;	  /* up to ts */
	uint64_t cpu_ns, wall_ns; /* wall_ns: set when it ends */
	uint64_t events, truncated;
	bool active; /* on its thread's stack, not suspended */
	bool gap, waits, running;
	uint32_t at;	 /* current node */
	uint32_t beyond; /* frames above it that have no node */
	struct slow_node *v;
	uint32_t n, cap;
	struct slow_step *steps;
	uint32_t nsteps, steps_cap;
	uint64_t steps_missing; /* beyond the limit: the first ones are kept */
	struct map children;	/* parent and function → node; only while it is followed */
};

struct slow_source {
	struct slow *slow;
	struct profile *profile; /* NULL: ended */
	uint32_t pid, number;
	struct match_known known;
};

struct slow_func {
	char *file, *name;
	int32_t line;
};

struct slow {
	struct slow_opts opts;
	struct match match;
	struct slow_source **sources;
	uint32_t nsources;

	struct slow_call *followed[SLOW_FOLLOWED]; /* the first nfollowed places were used */
	uint32_t nfollowed, free[SLOW_FOLLOWED], nfree;
	uint32_t nodes; /* of all followed calls: what they have allocated */
	uint32_t steps;
	struct map by_thread; /* source and tid → active call */
	struct map by_frame;  /* source and frame → suspended call */

	struct slow_call *kept[SLOW_KEPT_MAX];
	uint32_t kept_nodes, kept_steps;
	uint32_t nkept, least; /* least: index of the shortest, once there are n */

	struct slow_func *funcs;
	uint32_t nfuncs, funcs_cap;
	struct map func_of; /* source and its number → index in funcs */

	uint64_t seen, over, unknown_start, refused, interrupted;
};

/* A copy with just its nodes and steps, NULL: out of memory; its functions become indices in funcs. */
struct slow_call *slow_copy(const struct slow_call *c);
void slow_name(struct slow *s, struct slow_call *c);
void slow_call_free(struct slow_call *c); /* a copy; NULL is accepted */
DEFINE_FREEP(struct slow_call, slow_call_free)
/* The duration by the chosen clock */
uint64_t slow_length(const struct slow *s, const struct slow_call *c);
/* The index in funcs of a source's function; SLOW_NONE: none. */
uint32_t slow_func(struct slow *s, uint32_t source, uint32_t func);
/* Wall time of a followed call up to now_ns */
uint64_t slow_elapsed(const struct slow_call *c, uint64_t now_ns);

#endif
