/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One traced thread: its stacks of activations and its clocks. A thread has one current stack and,
 * where greenlets are used, parked ones. Each stack has clocks of its own, which stand still while
 * it is parked.
 *
 * A thread owns its stacks. It refers to nodes of the tree and to functions by index and knows
 * nothing else about them; the rules are in rebuild.c, the arithmetic of time in timing.c.
 */
#ifndef PYPROF_STACK_THREAD_H
#define PYPROF_STACK_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "snapshot/snapshot.h"

#define THREAD_NAME_SIZE  32
#define THREAD_MAX_PARKED 4096u
#define THREAD_STRETCHES  16 /* that a hypervisor's share is looked for in */
#define STACK_NO_SLOT	  UINT32_MAX
/* In activation.enter[SNAPSHOT_WALL]: it ran before we looked, so it has no duration. */
#define ACTIVATION_PARTIAL UINT64_MAX

/* In activation.func_kind: the frame can be suspended. */
#define ACTIVATION_SUSPENDS (UINT32_C(1) << 31)

struct activation {
	uint64_t frame;
	uint32_t node;
	uint32_t func_kind;		 /* its function, and ACTIVATION_SUSPENDS */
	uint64_t enter[SNAPSHOT_CLOCKS]; /* its stack's clocks at entry; modulo 2^64 */
	uint64_t probes; /* its stack's probe time then, less its own entry's; likewise */
};

static inline uint32_t activation_func(const struct activation *a)
{
	return a->func_kind & ~ACTIVATION_SUSPENDS;
}

/* No address of a frame has this bit: with it, the activation of the C function that a frame calls. */
#define ACTIVATION_NATIVE (UINT64_C(1) << 63)

/* Nor this one: with it, besides, that of a collection that the frame, or the C function, has set off. */
#define ACTIVATION_GC (UINT64_C(1) << 62)

static inline uint64_t activation_native(uint64_t frame)
{
	return frame | ACTIVATION_NATIVE;
}

static inline bool activation_is_native(uint64_t frame)
{
	return frame & ACTIVATION_NATIVE;
}

static inline bool activation_is_gc(uint64_t frame)
{
	return frame & ACTIVATION_GC;
}

/* The Python frame that is running, or has called the C function or set off the collection that is. */
static inline uint64_t activation_of(uint64_t frame)
{
	return frame & ~(ACTIVATION_NATIVE | ACTIVATION_GC);
}

struct stack {
	struct activation *acts; /* outermost first */
	uint32_t depth, cap;
	uint32_t indexed;  /* the outermost so many are in the thread's frame index */
	uint32_t slot;	   /* its place among the parked ones; STACK_NO_SLOT: was never parked */
	uint32_t overflow; /* activations above the limit of depth, not kept */
	uint64_t overflow_frame;
	/* Current: the thread's totals minus this are the stack's clocks. Parked: the clocks. */
	uint64_t clock[SNAPSHOT_CLOCKS];
	uint64_t probes; /* likewise, of the thread's probes */
	/* A greenlet, that is: it began while others were parked. */
	bool greenlet;
	uint64_t first, born, parked_at; /* when it began (0: not known), counts from, was parked */
	uint64_t begun[SNAPSHOT_CLOCKS]; /* its clocks at born */
};

/* A place for a parked stack. In use from the first parking until the stack is dropped. */
struct parked {
	struct stack stack;
	uint32_t older, newer; /* by time of parking; STACK_NO_SLOT at the ends */
	bool parked;	       /* false: free, or its stack is the current one */
};

/* A frame of a chain that is being received. */
struct chain_frame {
	uint64_t frame;
	uint32_t func;
};

/* Time on a CPU between two events, and who was charged. */
struct stretch {
	uint64_t cpu;
	uint32_t node;
};

/* Room for activations: what all stacks of a profile have allocated, and may allocate. */
struct stack_room {
	uint64_t used, limit;
};

/* Why a thread waits. */
struct thread_wait {
	uint8_t why;	 /* enum wait_reason, of its time now that is not CPU time */
	uint8_t gap_why; /* of the time whose CPU share is not known */
	int32_t syscall; /* that it is blocked in; -1: none, or not known */
	/* The wait that ended last. How much of it was in a run queue, the next switch tells. */
	uint8_t last_why;
	uint32_t last_node;
	uint64_t last_ns;
	uint64_t delay; /* its time in run queues, as of its last switch-out */
	bool delay_known;
};

/* What it has to do with the GIL: gil.c's. */
struct thread_gil {
	uint8_t of;    /* which one it uses */
	uint8_t group; /* while it waits */
	bool waits;
	bool awake;	  /* has waited, and runs */
	uint64_t runtime; /* as it was woken */
};

struct thread {
	/* What every event touches. */
	uint64_t last_ts; /* time is charged up to here */
	uint32_t node;	  /* who is charged: the innermost activation's node, or the root */
	uint32_t tid;
	bool live; /* seen or seeded since tracing began, and not dead */
	bool on_cpu;
	uint32_t nparked;
	struct stack cur;
	uint64_t total[SNAPSHOT_CLOCKS];
	uint64_t probes; /* what its hits have cost in all, as known at each, ns */

	/* The scheduler's view, see timing.c. */
	bool runtime_known;    /* runtime_base means something */
	bool lost;	       /* events were, since the last comparison */
	bool forgive;	       /* the next comparison may be off by any amount: adopt it */
	bool os_cpu;	       /* seeded, and no event so far: CPU time comes from the OS */
	bool os_running;       /* the seed saw it running */
	uint64_t runtime_base; /* the run time at which total[SNAPSHOT_CPU] was 0; modulo 2^64 */
	uint64_t cpu_cleared;  /* what was taken from total[SNAPSHOT_CPU] again */
	uint64_t gap_wall;     /* time whose CPU share is not known yet ... */
	uint32_t gap_node;     /* ... and who gets it */
	struct thread_wait wait;
	struct thread_gil gil;
	uint64_t switch_cpu;			    /* total[SNAPSHOT_CPU] at the last switch */
	struct stretch stretches[THREAD_STRETCHES]; /* the longest since then */

	uint64_t gc; /* the activation of a collection that has not ended, as far as is known; 0: none */
	uint64_t seed_ts; /* 0: not seeded, or the seed's stack has been confirmed */
	uint64_t start_ns, end_ns;
	uint32_t root;
	uint32_t at;	      /* its index among the profile's threads */
	struct thread *later; /* ended: the one that did next; NULL: none so far */
	uint64_t folded;      /* how many ended threads this stands for; 0: one thread */
	uint32_t entry; /* folded: the function that they ran; SNAPSHOT_NONE: several, or none */
	bool alive;
	bool missing;	     /* the OS did not know it when it was asked last ... */
	uint64_t missing_at; /* ... with that much written into the ring */
	bool greenlets;	     /* has switched stacks */
	char name[THREAD_NAME_SIZE];

	/* Parked stacks. */
	struct parked *parked;
	uint32_t nslots, slots_cap, free_slot; /* free ones are linked by `newer` */
	uint32_t oldest, newest;
	struct map index;	 /* frame → slot, for parked stacks and for deep ones */
	struct stack_room *room; /* borrowed; NULL: no limit */

	/* A chain that is being received, innermost first. */
	struct chain_frame *chain;
	uint32_t chain_n, chain_cap;
	uint16_t chain_flags;

	/* Resource counters, where they are asked for: as last seen; what came of a gap is not its. */
	uint64_t counters[PYP_COUNTERS];
	bool counters_known, counters_gap;

	struct mirror *mirror; /* what a watcher was sent of it; NULL: nothing */
};

struct thread *thread_new(uint32_t tid, uint32_t root); /* NULL: out of memory */
void thread_free(struct thread *th);
/* Free what only a live thread needs: all its stacks with their index; the chain in progress. */
void thread_drop_stacks(struct thread *th);
void thread_drop_chain(struct thread *th);
/*
 * A part of a chain has come, which is frames first to first + count of it: make room for them, at
 * chain[chain_n]. first 0 begins a new chain. False, and the chain is dropped: a part before it was
 * lost, count is above most, or it does not fit.
 */
bool thread_chain_reserve(struct thread *th, uint32_t first, uint32_t count, uint32_t most);
void thread_set_name(struct thread *th, const char *name);

static inline struct activation *thread_top(struct thread *th)
{
	return th->cur.depth ? &th->cur.acts[th->cur.depth - 1] : NULL;
}

/* The current stack's clock: the time that was charged to what is on it. */
static inline uint64_t thread_clock(const struct thread *th, int c)
{
	return th->total[c] - th->cur.clock[c];
}

/* What hits have cost while the current stack was on; both modulo 2^64. */
static inline uint64_t thread_probes(const struct thread *th)
{
	return th->probes - th->cur.probes;
}

/* Reserve one more activation on the current stack; false: max_depth or th->room is reached, or the
 * daemon is out of memory. */
bool thread_reserve(struct thread *th, uint32_t max_depth);

/* Bring node up to date after the current stack changed. */
void thread_update_node(struct thread *th);

/*
 * Park the current stack, which must not be empty; the current one is then a new, empty one.
 * -ENOMEM: unchanged. How many there may be (THREAD_MAX_PARKED) is the caller's business.
 */
int thread_park(struct thread *th);
/* Make the parked stack at slot the current one. The current one must be empty; it is dropped. */
void thread_unpark(struct thread *th, uint32_t slot);
/* Drop a parked stack with all that is on it. */
void thread_drop_parked(struct thread *th, uint32_t slot);
/* The frame at the end of s has been or is being removed: forget where it is. */
void thread_unindex(struct thread *th, struct stack *s, uint64_t frame);

/* Find the stack that holds this frame; *ret_slot is set for PLACE_PARKED. O(1) amortised over the
 * calls that built the stack, whatever its depth: a deep stack enters the index first. */
enum thread_place { PLACE_NOWHERE, PLACE_CURRENT, PLACE_PARKED };
enum thread_place thread_find(struct thread *th, uint64_t frame, uint32_t *ret_slot);

#endif
