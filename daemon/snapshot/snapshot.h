/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A snapshot: one consistent, immutable, self-contained copy of what was measured. The only thing
 * that formats, reports and the server's answers are made from. Plain data; all strings are UTF-8
 * and may hold anything a hostile target put there (formats escape them).
 *
 * Times are nanoseconds, per clock. A node of the calling-context tree holds the self time of one
 * calling context; cumulative times, function rows, edges and threads are derived by stats/view.c.
 */
#ifndef PYPROF_SNAPSHOT_SNAPSHOT_H
#define PYPROF_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/column.h"
#include "base/cost.h"
#include "base/histogram.h"
#include "base/mode.h"
#include "pyprof/bpf_abi.h"

#define SNAPSHOT_NONE UINT32_MAX
/* A duration that probes cost more than: not known. 0, so that the least of several is not known
 * either. Formats leave it out. */
#define SNAPSHOT_MIN_UNKNOWN 0u

enum snapshot_clock { SNAPSHOT_CPU = 0, SNAPSHOT_WALL = 1, SNAPSHOT_CLOCKS = 2 };

/* What of a function is an estimate, where it was watched in windows. */
enum snapshot_figure {
	SNAPSHOT_CALLS,
	SNAPSHOT_TOT_CPU,
	SNAPSHOT_TOT_WALL,
	SNAPSHOT_CUM_CPU,
	SNAPSHOT_CUM_WALL,
	SNAPSHOT_FIGURES
};

/* How long complete activations took, callees included, less what the probes of both have cost. */
struct snapshot_durations {
	struct histogram histogram;
	uint64_t max; /* 0: not known, as all that are in its bucket 0: probes cost more than it took */
};

struct snapshot_func {
	const char *filename;
	const char *name;
	const char *qualname; /* NULL: the interpreter has none */
	int32_t firstlineno;
	bool instant;	  /* C functions: its calls were one event each; not in saved snapshots */
	uint32_t variant; /* several code objects with this identity lived at once: 0, 1, … */
	bool pseudo;	  /* "(truncated)", "(lost)" …: not a Python function */
	/* Of its figures over all threads, where they are estimates: ns^2; negative: not known. */
	double variance[SNAPSHOT_FIGURES];
	struct snapshot_durations *durations; /* of all threads, by clock; NULL: none */
};

/* One calling context. Parents come before their children. */
struct snapshot_node {
	uint32_t parent; /* SNAPSHOT_NONE: a thread's root; its func is SNAPSHOT_NONE as well */
	uint32_t func;
	uint32_t thread;
	uint32_t inflight; /* activations still running when the snapshot was taken */
	uint64_t calls;
	uint64_t yields; /* how many of its ends were suspensions */
	uint64_t self[SNAPSHOT_CLOCKS];
	/* Shortest and longest complete activation, callees included. min is UINT64_MAX while there is
	 * none; SNAPSHOT_MIN_UNKNOWN where probes cost more than it took. */
	uint64_t min[SNAPSHOT_CLOCKS];
	uint64_t max[SNAPSHOT_CLOCKS];
};

struct snapshot_thread {
	uint32_t pid;
	uint32_t tid;
	const char *name;
	bool alive;
	uint64_t start_ns, end_ns;	 /* CLOCK_MONOTONIC; first seen, last seen */
	uint64_t total[SNAPSHOT_CLOCKS]; /* all its time while traced */
	uint32_t root;			 /* its root node; the root's self time is outside Python */
	uint64_t folded;   /* how many ended threads this stands for (tid 0); 0: one thread */
	const char *entry; /* folded: name of the function that they ran; NULL: several, or none */
};

/* What became of the children of a process that is followed. */
struct snapshot_children {
	uint64_t followed;    /* became targets of their own */
	uint64_t over_limit;  /* did not: there were too many already */
	uint64_t ended_first; /* had ended by then */
	uint64_t failed;      /* could not, for another reason */
};

/*
 * Of a target that was sampled, alone or beside probes. But for a trace's, a time T has a standard
 * error of sqrt(T * period_ns).
 */
struct snapshot_estimate {
	uint32_t rate;	    /* Hz, as it was asked for; 0: it was not sampled */
	uint64_t period_ns; /* CPU time that a sample stands for */
	uint64_t samples;
	uint64_t of_probes; /* further samples, of the time of probes: they are in no figure */
	uint64_t before;    /* of a trace: taken before its probes were attached */
};

/*
 * Logical stacks: the instances of a function that run in pieces, over all threads of a process.
 * Started: first called while traced. Partial: had run before it was first seen. What has started
 * or is partial and has not ended is open: suspended, running, or not watched to its end.
 */
enum snapshot_coro_kind {
	SNAPSHOT_GENERATOR,
	SNAPSHOT_COROUTINE,
	SNAPSHOT_ASYNC_GENERATOR,
	SNAPSHOT_GREENLET, /* the function is the outermost on its stack */
	SNAPSHOT_CORO_KINDS
};

/* "generator", "coroutine", …: in files, and for people. */
extern const char *const snapshot_coro_kinds[SNAPSHOT_CORO_KINDS];

struct snapshot_coro {
	uint32_t pid;
	uint32_t func;
	enum snapshot_coro_kind kind;
	bool ends_hidden; /* before CPython 3.11: those said to be open may have ended */
	uint64_t started, partial, ended, steps;
	uint64_t running[SNAPSHOT_CLOCKS]; /* with what they call and await */
	uint64_t suspended;		   /* wall time */
	/* From first call to end, wall time; of those that were seen to do both. min and max may be
	 * SNAPSHOT_MIN_UNKNOWN. */
	uint64_t lifetimes, total, min, max;
};

/* Of a target that was watched in windows: how much of it was seen. */
struct snapshot_windows {
	bool sampled;	       /* it was not watched all the time: all figures are estimates */
	uint32_t max_overhead; /* percent; 0: it was not to be watched in windows */
	uint64_t n;	       /* windows that stand for more than themselves */
	uint64_t span_ns;      /* from start to stop: traced_ns of it were windows */
	uint64_t seen_cpu_ns, all_cpu_ns; /* its own CPU time, in windows and in all */
	uint64_t samples;		  /* taken while no window was open */
	double samples_factor; /* by which they have changed what hits are taken to cost; 0: not known */
	uint64_t failed; /* attempts to open a window that failed; the daemon tried again later */
	const char *unsampled; /* why there are none, for people; "" or NULL: there may be */
};

/* How often samples met which function. */
struct snapshot_sampled {
	const uint64_t *of; /* by function, the first n; NULL: there are none */
	uint32_t n;
	uint64_t outside; /* no function */
};

/* Samples beside a trace, and of the program before it, until snapshot_correct has used them. */
struct snapshot_beside {
	struct snapshot_sampled trace, before;
};

/* What the reason "other" is, by system call; the longest ones. */
struct snapshot_call {
	const char *name; /* "unknown": not known; stopped by a signal or a debugger */
	uint64_t ns, n;
};

/* The one function held the GIL for so long while the other one waited for it; SNAPSHOT_NONE: outside of
 * Python. */
struct snapshot_gil_pair {
	uint32_t pid;
	uint32_t holder, waiter;
	uint64_t ns;
};

/* Why threads of a target waited; of several targets each has its own. */
struct snapshot_waits {
	bool measured;
	bool gil_known; /* else waiting for the GIL is in "lock" */
	struct snapshot_call *other;
	uint32_t nother;
	uint64_t pairs_dropped; /* ns of pairs of GIL holder and waiter that were too many */
};

/*
 * Plain numbers of a target, which add up where targets are merged. X(member, JSON key, label and text for
 * people): a line "label: N text" where it is not 0; label NULL: no line. Merging, saving, loading and
 * reports iterate this table. In order:
 *
 *	calls and returns seen
 *	returns or callers that fitted no stack: corrections made
 *	frames that were parked when tracing began: "(unseen)"
 *	frames that were unwound before they began to run
 *	greenlet and other stack switches followed
 *	stacks read again after a loss
 *	switches of threads onto or off a CPU that were not reported
 *	contexts or threads summed in "(truncated)"
 *	ends of calls for whose durations there was no room
 *	records that could not be decoded
 *	coroutines that were too many to be followed
 */
#define SNAPSHOT_FACTS(X)                                                                          \
	X(events, "events", NULL, "")                                                              \
	X(unmatched, "unmatched", "corrected", "events did not match any stack")                   \
	X(unseen, "unseen", "unseen", "frames, suspended when tracing began, have no name")        \
	X(unstarted, "unstarted", NULL, "")                                                        \
	X(stack_switches, "stack_switches", NULL, "")                                              \
	X(resyncs, "resyncs", "corrected", "stacks read again after a loss")                       \
	X(missed_switches, "missed_switches", "corrected", "context switches were not reported")   \
	X(truncated, "truncated", "truncated", "contexts or threads are summed in (truncated)")    \
	X(durations_dropped, "durations_dropped", "durations",                                     \
	  "calls are not among them: too many functions")                                          \
	X(decode_errors, "decode_errors", "dropped", "records that could not be read")             \
	X(forgotten, "forgotten_coroutines", NULL, "")

struct snapshot_target;
struct snapshot_fact {
	const char *key, *label, *text;
	size_t offset; /* of its uint64_t in struct snapshot_target */
};

/* Ends with key == NULL. */
extern const struct snapshot_fact snapshot_facts[];
uint64_t *snapshot_fact(struct snapshot_target *t, const struct snapshot_fact *fact);
uint64_t snapshot_fact_of(const struct snapshot_target *t, const struct snapshot_fact *fact);

/* What was traced; one per target. */
struct snapshot_target {
	uint32_t pid; /* 0: children that have ended, folded into one: see snapshot/fold.h */
	const char *cmdline, *exe, *python_file, *python_version,
		*build_id;     /* build_id: hex or "" */
	const char *self_test; /* what came of it, for people; NULL: not known */
	const char *mechanism; /* how the probes were attached, for people; NULL: not known */
	const char *warnings;  /* what may hide calls, for people; "" or NULL: nothing */
	enum mode mode;
	struct snapshot_estimate estimate; /* MODE_SAMPLE; others with samples */
	bool builtins;			   /* calls of C functions were traced or counted, too */
	bool misses_calls; /* some of that hid calls, or may have: counts are lower bounds */
	bool alive, tracing;
	bool follows;	      /* its children are followed */
	uint32_t parent;      /* followed: the process that forked it; 0: none */
	uint32_t folded;      /* how many processes this stands for; 0: one */
	uint32_t execs;	      /* how often it executed its own program again */
	uint64_t fork_gap_ns; /* from its fork to its attach: not in the figures */
	uint64_t exec_gap_ns; /* from its executions until tracing went on, as well */
	struct snapshot_children children;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC: first attached; taken at */
	uint64_t start_unix_ns, end_unix_ns;
	uint64_t traced_ns; /* how long probes were on, all windows together */
#define PYP_X(member, key, label, text) uint64_t member;
	SNAPSHOT_FACTS(PYP_X)
#undef PYP_X
	struct cost cost;  /* what a hit of its probes costs it */
	double cost_scale; /* that is so many times what it did when it was measured; 0: not known */
	bool corrected;	   /* that was subtracted, see snapshot/correct.h */
	uint64_t subtracted[SNAPSHOT_CLOCKS];
	uint64_t clamped;	       /* contexts that would have become negative */
	uint64_t losses[PYP_LOSS_MAX]; /* the BPF side's, see PYP_LOSSES */
	struct snapshot_windows windows;
	struct snapshot_beside beside;
	struct snapshot_waits waits;
};

/* An array with room to grow; see snapshot_grow(). */
struct snapshot_room {
	const void *array;
	uint32_t cap;
};

struct snapshot {
	const char *host, *kernel, *program; /* program: "pyprofd 0.1.0" */
	uint64_t taken_unix_ns;
	enum snapshot_clock clock; /* the one its user asked for */
	bool folded;		   /* library code counts as its callers' own, see stats/reduce.h */
	bool stripped;		   /* file names are without their directories */
	const char *builtins_of; /* only C functions that match have rows; NULL: all that there are */
	struct snapshot_target *targets;
	uint32_t ntargets;
	struct snapshot_thread *threads;
	uint32_t nthreads;
	struct snapshot_func *funcs;
	uint32_t nfuncs;
	struct snapshot_node *nodes;
	uint32_t nnodes;
	uint64_t measured; /* columns that were measured, of any target: bits, see base/column.h */
	uint64_t *columns[COLUMNS]; /* by node: its own figure; NULL: no node has one */
	struct snapshot_coro *coros;
	uint32_t ncoros;
	struct snapshot_gil_pair *gil_pairs; /* the longest first, by target */
	uint32_t ngil_pairs;
	/* While profiles are added; an index of the functions by identity, profile/known_funcs.h's. */
	struct {
		struct snapshot_room funcs, nodes, threads, coros, gil_pairs, columns[COLUMNS];
		void *known_funcs;
	} adding;
	void *arena; /* everything above lives in it */
};

/* The standard error of a function's figure; negative: not known. */
double snapshot_error(const struct snapshot_func *f, enum snapshot_figure figure);
/* Errors of figures that are added up, and do not know of each other; unknown stays unknown. */
void snapshot_add_variance(struct snapshot_func *f, const double variance[SNAPSHOT_FIGURES]);

/* Add durations to a function's. 0 or -ENOMEM. */
int snapshot_add_durations(struct snapshot *s, struct snapshot_func *f, int clock,
			   const struct histogram_sum *more, uint64_t max);
/* All of another snapshot's function's. */
int snapshot_merge_durations(struct snapshot *s, struct snapshot_func *f,
			     const struct snapshot_durations *more);
bool snapshot_has_durations(const struct snapshot *s);

/* Builders (session, tests) allocate everything from the snapshot's arena. OOM: NULL. */
struct snapshot *snapshot_new(void);
void *snapshot_alloc(struct snapshot *s, size_t n, size_t size); /* zeroed; overflow-checked */
const char *snapshot_str(struct snapshot *s, const char *str);	 /* copy; NULL stays NULL */
const char *snapshot_strn(struct snapshot *s, const char *str, size_t n);
void snapshot_free(struct snapshot *s);
DEFINE_FREEP(struct snapshot, snapshot_free)

/*
 * The array with room for n elements after the first `have`, which are kept; the rest is 0. NULL: out
 * of memory. Growth at least doubles what is there, so that adding many parts takes memory and time
 * in proportion to their sum: old arrays stay in the arena.
 */
void *snapshot_grow(struct snapshot *s, struct snapshot_room *room, const void *array,
		    uint32_t have, uint32_t n, size_t size);

/* How many bytes the snapshot has allocated. */
size_t snapshot_bytes(const struct snapshot *s);

/* Give these columns, and those that the snapshot has, room for the first n nodes: those there are, whose
 * figures are kept, and some to come. 0 or -ENOMEM. */
int snapshot_reserve_columns(struct snapshot *s, uint64_t columns, uint32_t n);
/* Add all figures of a node of `from` to those of a node of `to`, which has room for them. */
void snapshot_add_columns(struct snapshot *to, uint32_t into, const struct snapshot *from,
			  uint32_t node);
/* The columns that are not NULL. */
uint64_t snapshot_columns(const struct snapshot *s);
/* A node's own figure; 0 where no node has one. */
static inline uint64_t snapshot_figure(const struct snapshot *s, int column, uint32_t node)
{
	return s->columns[column] ? s->columns[column][node] : 0;
}

/* What folded threads are called, by their number and their entry function; NULL: out of memory. */
const char *snapshot_folded_name(struct snapshot *s, uint64_t n, const char *entry);

/* Anything lost? Then counts are lower bounds. */
bool snapshot_exact(const struct snapshot *s);

/* Is any figure an estimate? Then none is exact, but counts are no lower bounds. */
bool snapshot_estimated(const struct snapshot *s);
/* Are counts estimates, too, or missing? */
bool snapshot_guesses_counts(const struct snapshot *s);

/* Have the figures of functions standard errors? Of functions as they were when they were called: what
 * was put together from several since has none. */
bool snapshot_has_errors(const struct snapshot *s);

#define SNAPSHOT_NATIVE_FILE "~"

/* Are there rows of C functions: of no target, of all, of some? */
enum snapshot_builtins { SNAPSHOT_BUILTINS_NONE, SNAPSHOT_BUILTINS_ALL, SNAPSHOT_BUILTINS_SOME };
enum snapshot_builtins snapshot_builtins(const struct snapshot *s);

/* Collections of the garbage collector: "<gc generation 0>" … "<gc generation 2>", and "<gc>" where the
 * generation is not known. Pseudo functions that are called, and run. */
#define SNAPSHOT_GC_PREFIX "<gc"
bool snapshot_func_is_gc(const struct snapshot_func *f);

/* A function written in C: pstats' file of these, and no pseudo function of ours. */
bool snapshot_func_is_native(const struct snapshot_func *f);

/* The modes of its targets, a bit (1u << mode) for each; counted and sampled is both. */
unsigned int snapshot_modes(const struct snapshot *s);
unsigned int snapshot_target_modes(const struct snapshot_target *t);

/* How the thread's process was looked at. */
enum mode snapshot_thread_mode(const struct snapshot *s, uint32_t thread);

/* Structure sound (indices in range, parents first, one root per thread)? For tests and loads. */
bool snapshot_valid(const struct snapshot *s);

#endif
