/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A snapshot: a consistent, immutable, self-contained copy of the measurements. Formats, reports
 * and the server's answers use nothing else. Plain data. All strings are UTF-8 and can contain
 * anything that a malicious target puts there; formats escape them.
 *
 * Times are in ns, per clock. A node of the calling-context tree holds the self time of one calling
 * context; stats/view.c computes cumulative times, function rows, edges and threads.
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
/*
 * An unknown duration: shorter than the cost of its probes. It is 0, so that the minimum over
 * several is unknown too. Formats omit it.
 */
#define SNAPSHOT_MIN_UNKNOWN 0u

enum snapshot_clock { SNAPSHOT_CPU = 0, SNAPSHOT_WALL = 1, SNAPSHOT_CLOCKS = 2 };

/* The figures of a function that are estimates if the target is traced in windows. */
enum snapshot_figure {
	SNAPSHOT_CALLS,
	SNAPSHOT_TOT_CPU,
	SNAPSHOT_TOT_WALL,
	SNAPSHOT_CUM_CPU,
	SNAPSHOT_CUM_WALL,
	SNAPSHOT_FIGURES
};

/* Durations of complete activations, including callees, minus the cost of both probes. */
struct snapshot_durations {
	struct histogram histogram;
	uint64_t max; /* 0: unknown, like all in bucket 0: shorter than the cost of their probes */
};

/* Self time of a function by source line, from samples on the CPU clock. See lines.h. */
struct snapshot_line {
	int32_t line; /* 0: unknown */
	uint64_t samples;
	uint64_t self_ns;
	double variance; /* of self_ns, in ns^2 */
};

struct snapshot_func {
	const char *filename;
	const char *name;
	const char *qualname; /* NULL: the interpreter has none */
	int32_t firstlineno;
	bool instant;	  /* C functions: each call is one event; not in saved snapshots */
	uint32_t variant; /* number among live code objects with this identity: 0, 1, … */
	bool pseudo;	  /* "(truncated)", "(lost)" …: not a Python function */
	/*
	 * Variances of the figures over all threads, in ns^2, if they are estimates; negative:
	 * unknown.
	 */
	double variance[SNAPSHOT_FIGURES];
	struct snapshot_durations *durations; /* over all threads, per clock; NULL: none */
	struct snapshot_line *lines;	      /* over all threads, sorted by line */
	uint32_t nlines;		      /* 0: not sampled */
};

/* One calling context. Parents precede their children. */
struct snapshot_node {
	uint32_t parent; /* SNAPSHOT_NONE: a thread's root, whose func is SNAPSHOT_NONE as well */
	uint32_t func;
	uint32_t thread;
	uint32_t inflight; /* activations still running at the time of the snapshot */
	uint64_t calls;
	uint64_t yields; /* number of its ends that were suspensions */
	uint64_t self[SNAPSHOT_CLOCKS];
	/*
	 * The shortest and the longest complete activation, including callees. min is UINT64_MAX if
	 * there is none, and SNAPSHOT_MIN_UNKNOWN if it is shorter than the cost of its probes.
	 */
	uint64_t min[SNAPSHOT_CLOCKS];
	uint64_t max[SNAPSHOT_CLOCKS];
};

/*
 * Calls per call of the caller, from whole calls: those that began and ended while every call was
 * seen. Sums over windows, x: calls of this context in whole calls of its parent, y: whole calls of
 * this context. x2, xy, y2: sums over windows of x * x, x * (the parent's y), y * y.
 */
struct snapshot_whole {
	double x, y, x2, xy, y2;
};

struct snapshot_thread {
	uint32_t pid;
	uint32_t tid;
	const char *name;
	bool alive;
	uint64_t start_ns, end_ns;	 /* CLOCK_MONOTONIC: first seen, last seen */
	uint64_t total[SNAPSHOT_CLOCKS]; /* the thread's time while traced */
	uint32_t root;			 /* its root node, whose self time is outside Python */
	uint64_t folded;   /* number of ended threads in this row (tid 0); 0: a single thread */
	const char *entry; /* folded: the function that they ran; NULL: several or none */
};

/* The children of a followed process, by outcome. */
struct snapshot_children {
	uint64_t followed;    /* became targets */
	uint64_t over_limit;  /* not followed: too many targets */
	uint64_t ended_first; /* ended before they could be followed */
	uint64_t failed;      /* failed for another reason */
};

/*
 * A target that was sampled, in mode sample or with probes. Except in a trace, a time T has a
 * standard error of sqrt(T * period_ns).
 */
struct snapshot_estimate {
	uint32_t rate;	    /* requested rate in Hz; 0: not sampled */
	uint64_t period_ns; /* CPU time per sample */
	uint64_t samples;
	uint64_t of_probes; /* additional samples of the probes' own time; not in any figure */
	uint64_t before;    /* of a trace: samples taken before its probes were attached */
};

/*
 * Coroutine lifetimes: the instances of a function that runs in several steps, over all threads of
 * a process. Started: first called while traced. Partial: had run before tracing began. Started or
 * partial instances that have not ended are open: suspended, running, or their end was not
 * observed.
 */
enum snapshot_coro_kind {
	SNAPSHOT_GENERATOR,
	SNAPSHOT_COROUTINE,
	SNAPSHOT_ASYNC_GENERATOR,
	SNAPSHOT_GREENLET, /* the outermost function on the greenlet's stack */
	SNAPSHOT_CORO_KINDS
};

/* "generator", "coroutine", …; used in files and messages. */
extern const char *const snapshot_coro_kinds[SNAPSHOT_CORO_KINDS];

struct snapshot_coro {
	uint32_t pid;
	uint32_t func;
	enum snapshot_coro_kind kind;
	bool ends_hidden; /* before CPython 3.11: instances counted as open may have ended */
	uint64_t started, partial, ended, steps;
	uint64_t running[SNAPSHOT_CLOCKS]; /* including callees and awaited coroutines */
	uint64_t suspended;		   /* wall time */
	/*
	 * Wall time from first call to end, of instances with both observed. min and max may be
	 * SNAPSHOT_MIN_UNKNOWN.
	 */
	uint64_t lifetimes, total, min, max;
};

/* Coverage of a target that is traced in windows. */
struct snapshot_windows {
	bool sampled;	       /* windows were used, so all figures are estimates */
	uint32_t max_overhead; /* percent; 0: tracing was continuous */
	uint64_t n;	       /* windows that stand for more than their own time */
	uint64_t span_ns;      /* from start to stop; windows cover traced_ns of it */
	uint64_t whole_ns; /* from the start, or the last clear, until calls were traced in windows only */
	uint64_t seen_cpu_ns, all_cpu_ns; /* the target's own CPU time in windows, and in total */
	uint64_t samples;		  /* taken while no window was open */
	double samples_factor; /* factor that samples applied to the cost of hits; 0: unknown */
	uint64_t failed;       /* failed attempts to open a window; the daemon retried later */
	const char *unsampled; /* why there are no samples, as text; "" or NULL: not unsampled */
};

/* The number of samples of each function. */
struct snapshot_sampled {
	const uint64_t *of; /* per function, for the first n; NULL: none */
	uint32_t n;
	uint64_t outside; /* outside any function */
};

/*
 * What a node has besides its exact figures, outside of the time in which every call was traced: calls are
 * estimates, CPU time is of samples.
 */
struct snapshot_rest {
	uint64_t calls, yields, cpu;
};

/*
 * Samples taken during a trace and before it, and the CPU time that the same work takes undisturbed,
 * by the marks that were passed (session/pace.h), with its relative standard error; 0: unknown.
 * process_cpu_ns: what all threads used meanwhile. Kept until snapshot_finish has used them.
 */
struct snapshot_beside {
	struct snapshot_sampled trace, before;
	double undisturbed_ns, undisturbed_error, process_cpu_ns;
};

/* Waiting with the reason "other", by system call; the longest ones. */
struct snapshot_call {
	const char *name; /* "unknown": unknown, or stopped by a signal or a debugger */
	uint64_t ns, n;
};

/*
 * The time that one function held the GIL while another waited for it; SNAPSHOT_NONE: outside
 * Python.
 */
struct snapshot_gil_pair {
	uint32_t pid;
	uint32_t holder, waiter;
	uint64_t ns;
};

/* Reasons for waiting that are kept per target. */
struct snapshot_waits {
	bool measured;
	bool gil_known; /* false: waiting for the GIL is included in "lock" */
	bool walked; /* exact for each thread, distributed over contexts by the stacks of some waits */
	uint64_t walks; /* their number */
	struct snapshot_call *other;
	uint32_t nother;
	uint64_t pairs_dropped; /* ns of holder-waiter pairs beyond the limit */
};

/* One of the longest waits: some for each reason. */
struct snapshot_wait {
	uint32_t pid, tid;
	uint32_t func;	     /* that waited; SNAPSHOT_NONE: outside Python */
	uint8_t why;	     /* enum wait_reason */
	uint64_t ns;	     /* before corrections */
	uint64_t end_ns;     /* CLOCK_MONOTONIC of the target's machine */
	const char *syscall; /* NULL: none, or unknown */
	uint32_t fd; /* the descriptor that it waited for; SNAPSHOT_NONE: none, or unknown */
};

/*
 * Numbers of a target that are added up when targets are merged. X(member, JSON key, label, text):
 * reports print a line "label: N text" if the number is not 0; label NULL: no line. Merging,
 * saving, loading and reports iterate over this table. In order:
 *
 * 	calls and returns observed
 * 	returns or callers that did not match the stack: corrections
 * 	frames that were parked when tracing began: "(unseen)"
 * 	frames that were unwound before they started to run
 * 	greenlet and other stack switches
 * 	stacks read again after a loss
 * 	context switches that were not reported
 * 	contexts or threads added up in "(truncated)"
 * 	ends of calls whose durations exceeded the memory limit
 * 	samples of lines that exceeded the memory limit, or of functions without calls
 * 	records that could not be decoded
 * 	coroutines beyond the limit
 */
#define SNAPSHOT_FACTS(X)                                                                          \
	X(events, "events", NULL, "")                                                              \
	X(unmatched, "unmatched", "corrected", "events did not match any stack")                   \
	X(unseen, "unseen", "unseen", "frames, suspended when tracing began, have no name")        \
	X(unstarted, "unstarted", NULL, "")                                                        \
	X(stack_switches, "stack_switches", NULL, "")                                              \
	X(resyncs, "resyncs", "corrected", "stacks read again after a loss")                       \
	X(missed_switches, "missed_switches", "corrected", "context switches were not reported")   \
	X(unsplit_waits, "unsplit_waits", NULL, "")                                                \
	X(truncated, "truncated", "truncated", "contexts or threads are summed in (truncated)")    \
	X(durations_dropped, "durations_dropped", "durations",                                     \
	  "calls are not among them: too many functions")                                          \
	X(lines_dropped, "lines_dropped", "lines", "samples are not among them: too many lines")   \
	X(decode_errors, "decode_errors", "dropped", "records that could not be read")             \
	X(forgotten, "forgotten_coroutines", NULL, "")

struct snapshot_target;
struct snapshot_fact {
	const char *key, *label, *text;
	size_t offset; /* of the uint64_t in struct snapshot_target */
};

/* Terminated by key == NULL. */
extern const struct snapshot_fact snapshot_facts[];
uint64_t *snapshot_fact(struct snapshot_target *t, const struct snapshot_fact *fact);
uint64_t snapshot_fact_of(const struct snapshot_target *t, const struct snapshot_fact *fact);

/* A target of the snapshot. */
struct snapshot_target {
	uint32_t pid; /* 0: ended children folded into one, see snapshot/fold.h */
	const char *cmdline, *exe, *python_file, *python_version,
		*build_id;     /* build_id: hex or "" */
	const char *self_test; /* its result as text; NULL: unknown */
	const char *mechanism; /* how the probes were attached, as text; NULL: unknown */
	const char *warnings;  /* causes that may hide calls, as text; "" or NULL: none */
	enum mode mode;
	struct snapshot_estimate estimate; /* for MODE_SAMPLE and for other modes with samples */
	bool builtins;			   /* calls of C functions are included */
	bool misses_calls; /* a warning's cause hid calls or may have: counts are lower bounds */
	bool alive, tracing;
	bool since;	      /* figures since an earlier snapshot only, see snapshot/since.h */
	bool follows;	      /* its children are followed */
	uint32_t parent;      /* followed: pid of the process that forked it; 0: none */
	uint32_t folded;      /* number of processes in this target; 0: one */
	uint32_t execs;	      /* number of exec calls of its own program */
	uint64_t fork_gap_ns; /* ns from its fork to its attach; not in the figures */
	uint64_t exec_gap_ns; /* ns from its exec calls until tracing resumed; not in the figures */
	struct snapshot_children children;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC: first attached; time of the snapshot */
	uint64_t start_unix_ns, end_unix_ns;
	uint64_t traced_ns; /* time with attached probes, the sum of all windows */
#define PYP_X(member, key, label, text) uint64_t member;
	SNAPSHOT_FACTS(PYP_X)
#undef PYP_X
	/*
	 * What observing took from it, and its CPU time without that, both while it was observed. See
	 * snapshot_overhead().
	 */
	uint64_t overhead_ns, own_cpu_ns;
	struct cost cost;  /* cost of a hit of its probes */
	double cost_scale; /* ratio to the cost when it was measured; 0: unknown */
	bool corrected;	   /* the cost was subtracted, see accuracy/finish.h */
	uint64_t subtracted[SNAPSHOT_CLOCKS];
	uint64_t clamped;	       /* contexts that would have become negative */
	uint64_t losses[PYP_LOSS_MAX]; /* counted by the BPF programs, see PYP_LOSSES */
	struct snapshot_windows windows;
	struct snapshot_beside beside;
	struct snapshot_waits waits;
};

/* The capacity of a growing array; see snapshot_grow(). */
struct snapshot_room {
	const void *array;
	uint32_t cap;
};

struct snapshot {
	const char *host, *kernel, *program; /* program: "pyprofd 0.1.0" */
	uint64_t taken_unix_ns;
	enum snapshot_clock clock; /* the clock that the user selected */
	bool folded;		   /* library code is folded into its callers, see stats/reduce.h */
	bool stripped;		   /* file names have no directories */
	bool busy;		   /* idle waits are left out, see stats/reduce.h */
	const char *builtins_of;   /* pattern of the C functions that have rows; NULL: all */
	struct snapshot_target *targets;
	uint32_t ntargets;
	struct snapshot_thread *threads;
	uint32_t nthreads;
	struct snapshot_func *funcs;
	uint32_t nfuncs;
	struct snapshot_node *nodes;
	uint32_t nnodes;
	uint64_t measured; /* bit mask of columns measured for any target, see base/column.h */
	uint64_t *columns[COLUMNS];    /* per node: its own figure; NULL: no node has one */
	struct snapshot_whole *wholes; /* per node; NULL: none */
	struct snapshot_rest *rest; /* per node, until snapshot_finish has added it; NULL: none */
	struct snapshot_coro *coros;
	uint32_t ncoros;
	struct snapshot_gil_pair *gil_pairs; /* sorted by target, longest first */
	uint32_t ngil_pairs;
	struct snapshot_wait *waits; /* sorted by target, longest first */
	uint32_t nwaits;
	/*
	 * Index of functions by identity while profiles are added; owned by profile/known_funcs.h.
	 */
	struct {
		struct snapshot_room funcs, nodes, wholes, threads, coros, gil_pairs, waits,
			columns[COLUMNS], rest;
		void *known_funcs;
	} adding;
	void *arena; /* owns all of the above */
};

/*
 * Returns the overhead: what observing took, as a fraction of the process's own CPU time; negative:
 * unknown. Of several processes: of their sums.
 */
double snapshot_overhead(uint64_t overhead_ns, uint64_t own_cpu_ns);

/* Returns the standard error of a function's figure; negative: unknown. */
double snapshot_error(const struct snapshot_func *f, enum snapshot_figure figure);
/* Adds the variances of a second, independent set of figures; unknown plus anything is unknown. */
void snapshot_add_variance(struct snapshot_func *f, const double variance[SNAPSHOT_FIGURES]);

/* Adds durations to a function's histogram on one clock. Returns 0 or -ENOMEM. */
int snapshot_add_durations(struct snapshot *s, struct snapshot_func *f, int clock,
			   const struct histogram_sum *more, uint64_t max);
/* Adds all durations of a function of another snapshot. Returns 0 or -ENOMEM. */
int snapshot_merge_durations(struct snapshot *s, struct snapshot_func *f,
			     const struct snapshot_durations *more);
bool snapshot_has_durations(const struct snapshot *s);

/* Creates an empty snapshot. Builders allocate everything in its arena. NULL: out of memory. */
struct snapshot *snapshot_new(void);
void *snapshot_alloc(struct snapshot *s, size_t n,
		     size_t size); /* zeroed; checks for overflow; NULL: out of memory */
const char *snapshot_str(struct snapshot *s, const char *str); /* a copy; NULL stays NULL */
const char *snapshot_strn(struct snapshot *s, const char *str, size_t n);
void snapshot_free(struct snapshot *s);
DEFINE_FREEP(struct snapshot, snapshot_free)

/*
 * Returns an array with room for n elements after the first `have`, which are copied; the rest is
 * zeroed. NULL: out of memory. The capacity at least doubles, so adding many parts takes memory and
 * time in proportion to their sum; old arrays stay in the arena.
 */
void *snapshot_grow(struct snapshot *s, struct snapshot_room *room, const void *array,
		    uint32_t have, uint32_t n, size_t size);

/* Returns the number of bytes that the snapshot has allocated. */
size_t snapshot_bytes(const struct snapshot *s);

/*
 * Makes room in these columns (a bit mask), and in those that the snapshot has, for the first n
 * nodes. Existing figures are kept; n may exceed the number of nodes. Returns 0 or -ENOMEM.
 */
int snapshot_reserve_columns(struct snapshot *s, uint64_t columns, uint32_t n);
/* Adds all figures of a node of `from` to a node of `to`, whose columns must have room. */
void snapshot_add_columns(struct snapshot *to, uint32_t into, const struct snapshot *from,
			  uint32_t node);
/* Returns the bit mask of the columns that are not NULL. */
uint64_t snapshot_columns(const struct snapshot *s);
/* Returns a node's own figure; 0 if no node has one. */
static inline uint64_t snapshot_figure(const struct snapshot *s, int column, uint32_t node)
{
	return s->columns[column] ? s->columns[column][node] : 0;
}

static inline void snapshot_add_rest(struct snapshot_rest *to, const struct snapshot_rest *r)
{
	to->calls += r->calls;
	to->yields += r->yields;
	to->cpu += r->cpu;
}

/* Adds the sums of other windows. */
static inline void snapshot_add_whole(struct snapshot_whole *to, const struct snapshot_whole *w)
{
	to->x += w->x;
	to->y += w->y;
	to->x2 += w->x2;
	to->xy += w->xy;
	to->y2 += w->y2;
}

/*
 * Returns the name for a row of n folded threads with this entry function (may be NULL), allocated
 * in the arena; NULL: out of memory.
 */
const char *snapshot_folded_name(struct snapshot *s, uint64_t n, const char *entry);

/* Returns whether nothing was lost. Otherwise counts are lower bounds. */
bool snapshot_exact(const struct snapshot *s);

/* Returns whether any figure is an estimate. Counts are then neither exact nor lower bounds. */
bool snapshot_estimated(const struct snapshot *s);
/* Returns whether counts are estimates or missing. */
bool snapshot_guesses_counts(const struct snapshot *s);

/*
 * Returns whether functions' figures have standard errors. They apply to functions as measured; a
 * function that combines several has none.
 */
bool snapshot_has_errors(const struct snapshot *s);

#define SNAPSHOT_NATIVE_FILE "~"

/* Whether C functions have rows: for no target, for all, for some. */
enum snapshot_builtins { SNAPSHOT_BUILTINS_NONE, SNAPSHOT_BUILTINS_ALL, SNAPSHOT_BUILTINS_SOME };
enum snapshot_builtins snapshot_builtins(const struct snapshot *s);

/*
 * Garbage collections: "<gc generation 0>" to "<gc generation 2>", and "<gc>" if the generation is
 * unknown. Pseudo functions with calls and time.
 */
#define SNAPSHOT_GC_PREFIX "<gc"
bool snapshot_func_is_gc(const struct snapshot_func *f);

/*
 * Returns whether the function is written in C: it has pstats' file name for these and is not a
 * pseudo function.
 */
bool snapshot_func_is_native(const struct snapshot_func *f);

/*
 * Returns the modes of its targets as bits (1u << mode). A counted target with samples has both
 * bits.
 */
unsigned int snapshot_modes(const struct snapshot *s);
unsigned int snapshot_target_modes(const struct snapshot_target *t);

/* Returns the mode of the thread's process. */
enum mode snapshot_thread_mode(const struct snapshot *s, uint32_t thread);

/*
 * Returns whether the structure is consistent: indices in range, parents first, one root per
 * thread. For tests and for loaded files.
 */
bool snapshot_valid(const struct snapshot *s);

#endif
