/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profile of one target: takes events, maintains the calling-context tree and counters. Pure:
 * no I/O, no clock (time comes with the events), no globals. All growth is limited.
 *
 * It routes each event to the module for it and owns the modules' data: stacks (stack/: threads,
 * rules that match events to stacks, time, code objects), evidence of limited targets (accuracy/),
 * aggregated counts and samples (counting/), and the tree (stats/calltree.c).
 */
#ifndef PYPROF_PROFILE_PROFILE_H
#define PYPROF_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/code_names.h"
#include "counting/counts.h"
#include "counting/line_counts.h"
#include "event/event.h"
#include "snapshot/snapshot.h"
#include "stack/natives.h"
#include "stack/watch.h"

struct profile;

/*
 * Hard limits; 0 selects the default in parentheses. Figures beyond a limit are added up in
 * "(truncated)".
 */
struct profile_limits {
	uint32_t nodes;	       /* (4 Mi) */
	uint32_t funcs;	       /* (1 Mi) */
	uint32_t threads;      /* (65536) live threads and the few ended ones kept separately */
	uint32_t depth;	       /* (262144) frames per stack */
	uint64_t frames;       /* (4 Mi) frames allocated for all stacks, 32 bytes each */
	uint64_t string_bytes; /* (256 MiB) */
};

/*
 * Reads the names of a code object from the target's memory. Called if the BPF program could not
 * read its strings, and for code objects that were never announced. Fills *ret with malloc'd UTF-8
 * strings that the profile frees. announced_ns: the time of its record, 0: never; if it has been freed
 * since then, the names are another one's. Returns 0 or a negative errno. May be NULL (tests).
 */
typedef int (*profile_resolve_fn)(void *ctx, uint64_t code, uint64_t announced_ns,
				  struct code_names *ret);

struct profile *profile_new(const struct profile_limits *limits, profile_resolve_fn resolve,
			    void *ctx);
void profile_free(struct profile *p);
DEFINE_FREEP(struct profile, profile_free)

/*
 * Marks columns (a bit mask) as measured: snapshots contain them even if all figures are 0. Returns
 * 0 or -ENOMEM.
 */
int profile_keep_columns(struct profile *p, uint64_t columns);
/* Whether calls and returns show the stacks; false: changes of memory come with theirs. */
void profile_traces_calls(struct profile *p, bool on);
/* Sets the cost of hits from now on; recorded durations exclude it. */
struct cost;
void profile_set_cost(struct profile *p, const struct cost *cost);
/*
 * Starts measuring why threads wait and who holds the GIL meanwhile. Not available with windows.
 * Returns 0 or -ENOMEM.
 */
int profile_keep_waits(struct profile *p);
/*
 * The same if there are no events of calls: the stacks of some waits are walked (PYP_SAMPLE_WAIT).
 * profile_waits_since(): returns whether a thread has been waiting since before ts on a stack that is
 * not known; its stack can be set by profile_add_initial().
 */
int profile_keep_walks(struct profile *p);
bool profile_waits_since(const struct profile *p, uint64_t ts);
/*
 * In this target, a generator's suspension and its end produce the same event (CPython before
 * 3.11).
 */
void profile_ends_are_hidden(struct profile *p);

/*
 * Samples contain C functions above Python functions, possibly only as an address, which `find`
 * maps to a name. find NULL: no names (tests).
 */
void profile_names_natives(struct profile *p, natives_find_fn find, void *ctx);

/* Samples have lines, which this function reads. They are not counted without it. */
void profile_reads_lines(struct profile *p, line_counts_read_fn read, void *ctx);

/* Their lines are wrong: forgets them, and counts no more. */
void profile_refuse_lines(struct profile *p);

/* Samples accompany calls and returns, to correct their times. Call it before any of them. */
void profile_is_sampled(struct profile *p);
/* Handles a sample, or a record that names its code, from before tracing began. */
void profile_sample_before(struct profile *p, const struct event *e);

/* Handles one event in O(1). Never fails: figures beyond a limit are counted. */
void profile_event(struct profile *p, const struct event *e);

/*
 * Tracing begins (probes attached) or ends at time ts (ns). No time is charged between an end and
 * the next begin. An end drops all stacks; after a begin, threads are unknown until they get an
 * initial stack or an event.
 */
void profile_begin(struct profile *p, uint64_t ts);
void profile_end(struct profile *p, uint64_t ts);

/*
 * A target whose probes are limited (accuracy/evidence.h). in_windows: from ts on (ns), samples and waits
 * count; before any of the following, and again after an end. A pause is an end after which code objects
 * stay known, because the ends of code objects are still reported; samples and waits go on. After the
 * pause, fold moves the window's figures to the evidence; or keep those of a stretch, which is light if its probes have taken little of
 * the process's CPU time in it. gap: ns without tracing before the window that
 * begins; own_cpu: CPU time in ns of the target itself, outside of stretches.
 */
struct cost;
void profile_in_windows(struct profile *p, uint64_t ts);
void profile_pause(struct profile *p, uint64_t ts);
struct evidence_window;
void profile_fold(struct profile *p, const struct evidence_window *w);
/* Scales the costs given to folds so far by `times`. */
void profile_costs_change(struct profile *p, double times);
bool profile_is_light(const struct profile *p, uint64_t cpu_ns);
void profile_keep(struct profile *p, bool light);
/* The target's own CPU time in all stretches so far, ns: all of it was seen. */
void profile_set_stretches(struct profile *p, uint64_t cpu_ns);
/*
 * Before a snapshot: whether the present stretch is light; hits take `times` the cost given, with this
 * relative standard error. The cost in the snapshot's target includes that.
 */
void profile_set_accuracy(struct profile *p, bool light, double times, double error);
/* From now on marks are counted in windows, or they are not: see evidence_count_marks(). */
void profile_count_marks(struct profile *p, bool on);
/*
 * Sets how many marks were passed since they are counted, by all threads that make calls; before a
 * snapshot.
 */
void profile_set_marks(struct profile *p, uint64_t total);
/* Returns whether the thread makes calls in windows, or is unknown: the marks of others do not count. */
bool profile_makes_calls(const struct profile *p, uint32_t tid);
void profile_gap(struct profile *p, uint64_t ns);
void profile_own_cpu(struct profile *p, double ns);
/*
 * Call profile_limit after profile_begin: the window covers length_ns of the program's own time, i.e.
 * elapsed time minus the cost of its events; 0: it is a stretch, without a limit. It pauses when the limit is
 * reached; later events are discarded. whole: it goes on until the calls that began in it have ended, which
 * shows calls per call (accuracy/wholes.h), but no other figure. lasts: it would go on. tail_ns: for how long it
 * has done so, at ts. profile_window_end pauses at ts, unless the window has
 * paused or should have, and returns the covered time; hits cost `scale` times the value given to
 * profile_limit.
 */
struct profile_limit {
	uint64_t length_ns;
	const struct cost *cost; /* of hits */
	bool whole;
};
void profile_limit(struct profile *p, const struct profile_limit *l);
bool profile_window_lasts(const struct profile *p);
/* It reaches its end with the next event, whatever it has shown. */
void profile_window_cut(struct profile *p);
uint64_t profile_tail_ns(const struct profile *p, uint64_t ts);
/* Returns whether the records processed so far have reached the limit. */
bool profile_window_is_over(const struct profile *p);
/* Returns the cost of events in windows so far, in ns, including discarded events. */
uint64_t profile_taken(const struct profile *p);
/*
 * Returns the number of samples so far; clearing does not reset it, because samples also cost the
 * target time.
 */
uint64_t profile_samples(const struct profile *p);
uint64_t profile_window_end(struct profile *p, uint64_t ts, double scale);
/* Returns the CPU time of all threads since the last clear, as far as it was seen, in ns. */
uint64_t profile_cpu(const struct profile *p);

/*
 * A thread's initial stack, read from /proc and from the target's memory at time ts (between begin
 * and the first snapshot): frames innermost first (n may be 0), whether it was running or runnable,
 * and its run time. The stack applies if the thread's first event is later than ts; otherwise the
 * event's own chain does. Time is charged from the begin of tracing.
 */
struct initial_stack {
	uint32_t tid;
	const char *name;
	bool running;
	uint64_t runtime;
	uint64_t asked_ns; /* the stack was read after that time */
	const struct pyp_chain_frame *frames;
	size_t n;
};
void profile_add_initial(struct profile *p, uint64_t ts, const struct initial_stack *initial);

/*
 * Updates a thread's run time (ns) from the OS, for threads with an initial stack and no context
 * switch event yet. Ignored for others.
 */
void profile_update_runtime(struct profile *p, uint32_t tid, uint64_t ts, uint64_t runtime);
/*
 * Mode count: replaces the counts of the previous reading by all calls by thread, caller and
 * callee. Counts that were final in the previous reading stay, and later readings do not contain
 * them.
 */
void profile_set_calls(struct profile *p, const struct call_count *v, size_t n);

/* Names may change; the last one applies. The call also shows that the OS lists the thread. */
void profile_set_thread_name(struct profile *p, uint32_t tid, const char *name);
/*
 * The OS no longer lists the thread. Its exit record may still be in the ring. The thread counts as
 * ended without a record (the record was lost, or tracing was off) if this is called again after
 * everything written to the ring before the first call has been read. written, read: positions in
 * the ring, in bytes.
 */
void profile_thread_gone(struct profile *p, uint32_t tid, uint64_t written, uint64_t read);
/* Calls fn for each live thread; fn may end it. */
typedef void (*profile_thread_fn)(void *ctx, uint32_t tid);
void profile_foreach_thread(const struct profile *p, profile_thread_fn fn, void *ctx);

/* Resets counts and times and keeps the stacks. Running frames continue with ncalls 0. */
void profile_clear(struct profile *p, uint64_t ts);

/*
 * Adds this profile's threads, functions and nodes to a snapshot (with pid in its threads), and its
 * counters to *target (events, unmatched, unstarted, stack_switches, resyncs, missed_switches,
 * truncated). Running frames have their time up to now_ns. Does not change the profile. Arrays in s
 * are replaced by larger ones; several profiles can be added one after another, and functions with
 * the same identity are merged. Returns 0 or -ENOMEM.
 */
int profile_snapshot(const struct profile *p, uint64_t now_ns, uint32_t pid, struct snapshot *s,
		     struct snapshot_target *target);

/*
 * Reports every change of every stack to w from now on, within w's time range (see stack/watch.h).
 * Returns 0, -ENOMEM, or -EBUSY if there is a watcher. profile_unwatch reports that all frames are
 * popped at ts, and forgets w.
 */
int profile_watch(struct profile *p, const struct watcher *w);
struct watch_counts profile_unwatch(struct profile *p, uint64_t ts);
struct watch_counts profile_watch_counts(const struct profile *p);

/* The function with this index. Strings are valid until the next event. */
struct profile_func {
	const char *filename, *name, *qualname; /* qualname: NULL if there is none */
	int32_t firstlineno;
};
struct profile_func profile_func(const struct profile *p, uint32_t func);
/* Sets the fields sampled, n, seen_cpu_ns, all_cpu_ns and samples. */
void profile_windows(const struct profile *p, struct snapshot_windows *ret);

struct profile_counts {
	uint64_t events, calls, unmatched, unseen, unstarted, stack_switches, resyncs, truncated;
	uint64_t threads; /* threads seen since the profile was last cleared */
	uint32_t funcs, nodes;
};
struct profile_counts profile_counts(const struct profile *p);

#endif
