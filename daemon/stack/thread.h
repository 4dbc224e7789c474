/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A traced thread: its stacks of activations and its clocks. A thread has one current stack and,
 * with greenlets, parked ones. Each stack has its own clocks, which stand still while it is parked.
 *
 * A thread owns its stacks. It refers to nodes of the tree and to functions by index only.
 * rebuild.c contains the rules for stacks, timing.c the arithmetic of time.
 */
#ifndef PYPROF_STACK_THREAD_H
#define PYPROF_STACK_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/wait.h"
#include "snapshot/snapshot.h"

#define THREAD_NAME_SIZE  32
#define THREAD_MAX_PARKED 4096u
#define THREAD_INTERVALS  16 /* intervals kept for subtracting time stolen by a hypervisor */
#define STACK_NO_SLOT	  UINT32_MAX
/* Value of activation.enter[SNAPSHOT_WALL]: it started before tracing, so it has no duration. */
#define ACTIVATION_PARTIAL UINT64_MAX

/* Flag in activation.func_kind: the frame can be suspended. */
#define ACTIVATION_SUSPENDS (UINT32_C(1) << 31)

struct activation {
	uint64_t frame;
	uint32_t node;
	uint32_t func_kind;		 /* index of its function, and ACTIVATION_SUSPENDS */
	uint64_t enter[SNAPSHOT_CLOCKS]; /* its stack's clocks at entry, in ns; modulo 2^64 */
	uint64_t probes; /* its stack's probe time at entry, without its own; ns, modulo 2^64 */
};

static inline uint32_t activation_func(const struct activation *a)
{
	return a->func_kind & ~ACTIVATION_SUSPENDS;
}

/*
 * Frame addresses never have this bit. With it: the activation of a C function called by the frame.
 */
#define ACTIVATION_NATIVE (UINT64_C(1) << 63)

/*
 * Nor this bit. With it: the activation of a collection triggered by the frame or by the C
 * function.
 */
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

/*
 * Returns the Python frame of an activation, i.e. its own frame, or the frame that called the C
 * function or triggered the collection.
 */
static inline uint64_t activation_of(uint64_t frame)
{
	return frame & ~(ACTIVATION_NATIVE | ACTIVATION_GC);
}

struct stack {
	struct activation *acts; /* outermost first */
	uint32_t depth, cap;
	uint32_t indexed;  /* number of outermost activations in the thread's frame index */
	uint32_t slot;	   /* slot among the parked stacks; STACK_NO_SLOT: never parked */
	uint32_t overflow; /* activations above the depth limit, which are not stored */
	uint64_t overflow_frame;
	/*
	 * Current stack: the thread's totals minus these values are the stack's clocks. Parked: the
	 * clocks.
	 */
	uint64_t clock[SNAPSHOT_CLOCKS];
	uint64_t probes; /* the same for the thread's probe time */
	/* Started while the thread had parked stacks. */
	bool greenlet;
	uint64_t first, born,
		parked_at; /* start (0: unknown), start of counting, time of parking */
	uint64_t begun[SNAPSHOT_CLOCKS]; /* its clocks at born */
};

/* The slot of a parked stack. In use from the first parking until the stack is dropped. */
struct parked {
	struct stack stack;
	uint32_t older, newer; /* list by time of parking; STACK_NO_SLOT at the ends */
	bool parked;	       /* false: the slot is free, or its stack is the current one */
};

/* A frame of a chain that is being received. */
struct chain_frame {
	uint64_t frame;
	uint32_t func;
};

/* An interval on a CPU between two events, and the node it was charged to. */
struct cpu_interval {
	uint64_t cpu;
	uint32_t node;
};

/* The number of activations allocated by all stacks of a profile, and its limit. */
struct stack_room {
	uint64_t used, limit;
};

/* The reason why a thread waits. */
struct thread_wait {
	uint8_t why;	 /* enum wait_reason of its current time off the CPU */
	uint8_t gap_why; /* the reason for gap_wall */
	int32_t syscall; /* system call that it is blocked in; -1: none or unknown */
	int32_t fd;	 /* the descriptor that the call waits for; -1: none or unknown */
	/*
	 * The reason of the last completed wait. The next switch shows how much of it was in a run
	 * queue.
	 */
	uint8_t last_why;
	uint32_t last_node;
	uint64_t last_ns;
	uint64_t delay; /* ns in run queues, as of its last switch-out */
	bool delay_known;
	bool delay_wrong; /* it will contain all of the current wait */
};

/* Waiting of a thread that sends no events: counting/waiting.c. Times in ns. */
struct thread_waiting {
	bool given;	    /* its wait is booked by its events: profile_wait_give */
	bool off;	    /* it waits now ... */
	uint64_t since;	    /* ... from this time (CLOCK_MONOTONIC) on ... */
	uint32_t node;	    /* ... on this stack; NODE_NONE: unknown */
	uint64_t one_in;    /* and that stack stands for as many waits; 0, 1: for itself */
	uint32_t next_node; /* the same of the wait that begins next */
	uint64_t next_one_in;
	uint64_t runtime;    /* at that time; 0: unknown */
	uint64_t last_stand; /* what its last wait was weighted with; 0: it is in the tree as it is */
	/* All completed waits, and those of them that are in the tree as they are. */
	uint64_t total[WAITS], placed[WAITS];
	uint32_t rest; /* node for waits of unknown stacks; NODE_NONE: none yet */
};

/*
 * A change of memory whose stack is still to come (MEMORY and BLOCK events with
 * PYP_MEMORY_STACK).
 */
struct thread_memory {
	bool known;
	int64_t resident, mapped;
	uint32_t pools;
	uint64_t address, size; /* of a block that was mapped or unmapped; size 0: none */
	bool unmap;
};

/* State of gil.c. */
struct thread_gil {
	uint8_t of;    /* which GIL it uses */
	uint8_t group; /* valid while it waits */
	bool waits;
	bool awake;	  /* has waited and runs again */
	uint64_t runtime; /* run time when it was woken */
};

/* The outermost call of a thread that is open in a window: accuracy/wholes.h. */
struct thread_whole {
	uint32_t depth; /* of the stack while it runs; 0: there is none */
	uint32_t first; /* of its list: 1 + node; 0: empty */
};

struct thread {
	/* Fields that every event accesses. */
	uint64_t last_ts; /* time is charged up to here */
	uint32_t node;	  /* node to charge: the innermost activation's, or the root */
	uint32_t tid;
	bool live; /* seen, or given an initial stack, since tracing began, and not ended */
	bool on_cpu;
	uint32_t nparked;
	struct stack cur;
	uint64_t total[SNAPSHOT_CLOCKS];
	uint64_t probes; /* accumulated cost of its hits, ns */

	/* The scheduler's run time, see timing.c. */
	bool runtime_known;    /* runtime_base is valid */
	bool lost;	       /* events were lost since the last comparison */
	bool forgive;	       /* the next comparison accepts any difference */
	bool os_cpu;	       /* initial stack, no event yet: CPU time comes from the OS */
	bool os_running;       /* it was running when the initial stack was read */
	uint64_t runtime_base; /* run time at which total[SNAPSHOT_CPU] was 0; modulo 2^64 */
	uint64_t cpu_cleared;  /* ns subtracted from total[SNAPSHOT_CPU] when it was reset */
	uint64_t gap_wall;     /* wall time whose CPU share is still unknown ... */
	uint32_t gap_node;     /* ... and the node it belongs to */
	struct thread_wait wait;
	struct thread_waiting waiting;
	struct thread_gil gil;
	struct thread_whole whole;
	struct thread_memory memory;
	uint64_t switch_cpu; /* total[SNAPSHOT_CPU] at the last switch */
	struct cpu_interval intervals[THREAD_INTERVALS]; /* the longest intervals since then */

	uint64_t gc;	     /* activation of a collection that may still run; 0: none */
	uint64_t initial_ts; /* 0: no initial stack, or an event has confirmed it */
	uint64_t start_ns, end_ns;
	uint32_t root;
	uint32_t at;	       /* index in the table of threads */
	struct thread *later;  /* ended: the thread that ended next; NULL: none */
	uint64_t shown, marks; /* in windows: calls and returns, marks */
	uint64_t folded;       /* number of ended threads in this row; 0: one thread */
	uint32_t entry; /* folded: the function that they ran; SNAPSHOT_NONE: several or none */
	bool alive;
	bool missing;	     /* the OS did not list it at the last query ... */
	uint64_t missing_at; /* ... when this many bytes had been written to the ring */
	bool greenlets;	     /* has switched stacks */
	char name[THREAD_NAME_SIZE];

	/* Parked stacks. */
	struct parked *parked;
	uint32_t nslots, slots_cap, free_slot; /* free slots are linked by `newer` */
	uint32_t oldest, newest;
	struct map index;	 /* frame → slot, for parked stacks and for deep ones */
	struct stack_room *room; /* borrowed; NULL: no limit */

	/* A chain that is being received, innermost frame first. */
	struct chain_frame *chain;
	uint32_t chain_n, chain_cap;
	uint16_t chain_flags;

	/*
	 * Resource counters, if enabled: last values. A change across a gap is not charged to the
	 * thread.
	 */
	uint64_t counters[PYP_COUNTERS];
	bool counters_known, counters_gap;

	struct mirror *mirror; /* frames reported to the watcher; NULL: none */
};

struct thread *thread_new(uint32_t tid, uint32_t root); /* NULL: out of memory */
void thread_free(struct thread *th);
/*
 * Frees the data that only live threads need: all stacks with their index, and the chain being
 * received.
 */
void thread_drop_stacks(struct thread *th);
void thread_drop_chain(struct thread *th);
/*
 * Makes room at chain[chain_n] for frames first to first + count of a chain; first 0 starts a new
 * chain. Returns false and drops the chain if an earlier part was lost, count exceeds `most`, or
 * memory is short.
 */
bool thread_chain_reserve(struct thread *th, uint32_t first, uint32_t count, uint32_t most);
void thread_set_name(struct thread *th, const char *name);

static inline struct activation *thread_top(struct thread *th)
{
	return th->cur.depth ? &th->cur.acts[th->cur.depth - 1] : NULL;
}

/* Returns whether it makes more than a few of all these calls and returns. */
static inline bool thread_makes_calls(const struct thread *th, uint64_t of)
{
	return th->shown * 50 >= of;
}

/* Returns the current stack's clock: ns charged to its activations. */
static inline uint64_t thread_clock(const struct thread *th, int c)
{
	return th->total[c] - th->cur.clock[c];
}

/* Returns the cost of hits while the current stack was active, in ns. Both are modulo 2^64. */
static inline uint64_t thread_probes(const struct thread *th)
{
	return th->probes - th->cur.probes;
}

/*
 * Reserves room for one more activation on the current stack. Returns false if max_depth or
 * th->room is reached, or memory is short.
 */
bool thread_reserve(struct thread *th, uint32_t max_depth);

/* Updates `node` after the current stack has changed. */
void thread_update_node(struct thread *th);

/*
 * Parks the current stack, which must not be empty; a new, empty stack becomes current. Returns 0,
 * or -ENOMEM with nothing changed. The caller enforces the limit (THREAD_MAX_PARKED).
 */
int thread_park(struct thread *th);
/*
 * Makes the parked stack in the slot the current one. The previous current stack must be empty and
 * is dropped.
 */
void thread_unpark(struct thread *th, uint32_t slot);
/* Drops a parked stack with all its activations. */
void thread_drop_parked(struct thread *th, uint32_t slot);
/* Removes from the index the last frame of s, which has been or is being popped. */
void thread_unindex(struct thread *th, struct stack *s, uint64_t frame);

/*
 * Finds the stack that holds the frame; *ret_slot is set for PLACE_PARKED. O(1) amortised over the
 * calls that built the stack, at any depth, because a deep stack is indexed first.
 */
enum thread_place { PLACE_NOWHERE, PLACE_CURRENT, PLACE_PARKED };
enum thread_place thread_find(struct thread *th, uint64_t frame, uint32_t *ret_slot);

#endif
