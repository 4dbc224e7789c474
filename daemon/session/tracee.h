/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One traced process: target, its Python, the plan, the probe and the profile, and the life they
 * share: attached → tracing ⇄ attached → ended. Owns everything below it. It has no event loop of
 * its own: the set of sessions calls tracee_drain and reports the end of the process to it.
 */
#ifndef PYPROF_SESSION_TRACEE_H
#define PYPROF_SESSION_TRACEE_H

#include "inspect/inspect.h"
#include "plan/plan.h"
#include "probe/probe.h"
#include "python/python.h"
#include "session/breaker.h"
#include "session/collector.h"
#include "session/counting.h"
#include "session/pace.h"
#include "session/progress.h"
#include "session/session.h"
#include "session/strangers.h"
#include "session/survey.h"
#include "session/windows.h"
#include "session/workers.h"
#include "profile/profile.h"
#include "target/target.h"
#include "slow/slow.h"
#include "timeline/timeline.h"
#include "verify/calibration.h"
#include "verify/selftest.h"

/* Limit of forks reported by one drain; more are counted as failed. */
#define TRACEE_MAX_NEWS 256

/* A descendant was forked, or has executed a program before it became a target. */
struct tracee_news {
	pid_t pid, parent;
	uint64_t ts;
	bool executed;
};

/* State of a target with bounded overhead (session/windowed.c). */
struct windowed {
	struct windows ctl;
	uint64_t since_ns; /* the gap is accounted up to here; 0: there is none */
	uint64_t since_cpu_ns, since_taken_ns; /* its CPU time, and the probes' */
	uint64_t stretches_cpu_ns;	       /* its own in all stretches that have ended */
	uint64_t opened_overhead_ns;	       /* probes' time when the window was opened */
	uint64_t opened_traps;		       /* samples of it */
	uint64_t opened_cpu_ns, opened_lost;
	struct probe_latency opened_latency;
	double opened_scale,
		opened_times; /* of the costs that limit the window: by latency, by samples */
	/*
	 * In windows, the number of samples that hit the probes' own time, and the number to expect from measured
	 * costs: hits cost as many times as much.
	 */
	double traps, expected;
	uint64_t begun_ns; /* started, while tracing */
	uint64_t span_ns;  /* of the times before that */
	uint64_t whole_ns; /* of it, until the first stretch ended; 0: it has not */
	uint64_t links_ns; /* estimated time of opening and closing windows */
	/* When the window was closed, while its records are still being read; 0: they are not. */
	uint64_t closed_ns, closed_cpu_ns, closed_traps;
	uint64_t closed_at;	  /* bytes that had been written to the ring then */
	struct progress progress; /* its opcodes are the tracee's */
	unsigned int marks_given_up;
	uint64_t marks_cleared; /* kept marks' hits at the last clear */
};

/* What observing took from a target in some time, and its CPU time, which includes that; in ns. */
struct taken {
	double hits, other; /* hits: estimated by their number; other: samples, windows, marks */
	double traps;	    /* samples that fell on hits */
	double cpu;
};

struct tracee {
	struct target *target;
	struct python *python;
	struct plan plan;
	struct probe *probe;	 /* NULL: it has ended */
	struct probe *old_probe; /* the previous one; its ring may still be watched: see set.c */
	uint64_t old_losses[PYP_LOSS_MAX];
	struct probe_latency old_latency,
		latency_base;			      /* of the probes before; at the last clear */
	uint64_t old_traps, traps_base, samples_base; /* likewise, of samples: see tracee_traps */
	enum probe_mechanism mechanism;
	/* The thread that owned the uprobe link has ended: see tracee_hold_on. */
	bool lost_hold;
	uint64_t lost_hold_ns, until_ns, hold_gap_ns;
	struct opcodes *opcodes;	 /* NULL: not needed so far */
	struct calibration *calibration; /* NULL: not possible, or not needed */
	struct cost cost;		 /* as far as known: see tracee_cost */
	bool cost_of_other;		 /* it was measured on another build */
	double self_test_ns;		 /* of an event in the self-test; 0: not known */
	bool has_started;		 /* tracing has begun, once at least */
	bool cost_taken;		 /* the calibration's result is in it */
	struct profile *profile;
	/* The helper process that reads the target's files and memory; NULL: none. looking: a new
	 * one, which inspects the target after an exec. */
	struct inspect *inspect, *looking;
	struct inspect_result found; /* while it is being opened; found_err: -EINPROGRESS, not yet */
	struct diag found_diag;
	int found_err;
	struct target_opts opts;
	const struct collector *collector;
	struct windowed windowed; /* collector_windowed's */
	struct counting counting; /* collector_count's */
	struct pace pace;	  /* collector_trace's and collector_count's */
	struct breaker breaker;
	uint64_t start_cpu_ns;		 /* its CPU time when tracing began */
	uint64_t known_ns, known_cpu_ns; /* the same when attaching began, or it was forked */
	bool no_calls;	    /* no call was seen, though it used 1 s of CPU time since then */
	uint64_t period_ns; /* of samples */
	struct reference *reference; /* while it is being opened; after a stop until: */
	uint64_t refer_end_ns;	     /* 0: it has not begun */
	struct survey *survey;	     /* while it is being opened */
	struct probe *loading;	     /* the same; becomes `probe` */
	struct workers *workers;     /* the same; NULL: unknown */
	struct forecast forecast;
	struct selftest *selftest; /* while it is verified */
	bool prepared;		   /* see tracee_prepare; if true: */
	int prepared_err;
	struct diag prepared_diag;
	uint64_t samples_before; /* that reference samples took */
	enum session_state state;
	char end_reason[64];
	char warning[256];    /* see tracee_warn_text */
	char hidden[256];     /* see python_hidden */
	bool hidden_misses;   /* likewise */
	uint64_t hidden_ns;   /* when that was found */
	uint64_t late_before; /* questions that inspectors before did not answer in time */
	bool misses_calls;    /* likewise, since attached or cleared */
	uint64_t warned_ns;   /* when that was checked */
	unsigned int breaks;  /* at its sites, when it was opened: see strangers.h */
	char strangers[STRANGERS_TEXT];
	char self_test[256];	    /* see verify_text */
	uint64_t started_ns;	    /* CLOCK_MONOTONIC of the running window, while tracing */
	uint64_t first_ns, last_ns; /* first attached; ended */
	uint64_t first_unix_ns;
	uint64_t traced_ns; /* of the windows that are over */
	uint64_t halt_ns;   /* SESSION_STOPPING: since when nothing is recorded */
	bool ends;	    /* … because the process has ended */
	/* The ring contents up to goal_at were recorded before goal_ns (0: none is set); all
	 * records from before current_ns have been processed. */
	uint64_t goal_at, goal_ns, current_ns;
	uint64_t decode_errors;
	uint64_t base[PYP_LOSS_MAX]; /* the losses at the last clear */
	uint64_t events_seen;	     /* at the last rate sample */
	uint64_t rate_ns, events_per_s;
	uint64_t end_losses[PYP_LOSS_MAX]; /* at its end */
	uint64_t sweep_ns; /* when forked children are due to be swept; 0: none are */
	pid_t sweep_child;
	uint64_t cpu_ns;	  /* the process's CPU time, as last read */
	uint64_t overhead_ns;	  /* estimated time of hits in it */
	uint64_t overhead_events; /* number of events it includes */
	/*
	 * While it was observed: since the start or the last clear; since the last rate sample; and,
	 * smoothed, at that time. read: as last read, without its marks.
	 */
	struct taken taken, taken_now, taken_lately, taken_read;
	double marks_read;
	struct timeline *timeline; /* borrowed; NULL: none is taken */
	uint32_t timeline_source;
	struct slow *slow; /* borrowed; NULL: slow calls are not recorded */
	uint32_t slow_source;
	/* Identifies the executed program; the files of the program and of the interpreter. */
	uint64_t exec_id;
	uint32_t gils; /* number of known address ranges of GILs */
	struct target_file exe, file;
	/* An observed exec: when; until when to look for the interpreter in the new program. */
	uint64_t exec_ns, exec_until_ns, exec_retry_ns;
	bool exec_other; /* by a thread other than the leader */
	bool executed;	 /* … and the new program has not been inspected */
	uint32_t execs;
	uint64_t exec_gap_ns;
	/* Following: its parent, and figures of its children. */
	pid_t parent;
	uint64_t forked_ns, fork_gap_ns;
	struct snapshot_children children;
	struct tracee_news news[TRACEE_MAX_NEWS];
	size_t nnews;
};

/*
 * Attaching, in steps, none of which blocks for long; session/looking.c drives them.  look: a
 * helper process begins to inspect the target. When inspect_fd(t->inspect) is readable, call
 * tracee_looked().
 */
int tracee_look(pid_t pid, const struct target_opts *opts, struct tracee **ret, struct diag *diag);
bool tracee_looked(struct tracee *t);
/* Then: check the result, and begin the self-test (verify/selftest.h) if it is enabled.
 * tracee_open() returns the error. */
void tracee_prepare(struct tracee *t);
/*
 * Returns whether the self-test has ended, or there is none. If false, call it again when the
 * descriptor is readable, or at the deadline (CLOCK_MONOTONIC ns); both may change with each call.
 */
bool tracee_verified(struct tracee *t);
int tracee_verify_fd(const struct tracee *t);
uint64_t tracee_verify_deadline(const struct tracee *t);
/* Then: begin to measure the probes' cost, unless the target is sampled undisturbed before. */
void tracee_calibrate(struct tracee *t);
/*
 * Meanwhile: load the programs on a thread, with `observe` also those of the next two steps. These
 * may begin when observers_are_loaded, and tracee_open() does not wait for its own when is_loaded.
 * When one of them changes, there is an event of probe_ready_fd().
 */
void tracee_load_begin(struct tracee *t, bool observe);
bool tracee_observers_are_loaded(const struct tracee *t);
bool tracee_is_loaded(const struct tracee *t);
/* Then, if it will be traced: sample it for REFERENCE_NS, until tracee_refer_end(). Returns a
 * negative errno if it cannot be sampled. turn: to be called every REFERENCE_TURN_NS. */
int tracee_refer(struct tracee *t);
void tracee_refer_turn(struct tracee *t, uint64_t now_ns);
void tracee_refer_end(struct tracee *t);
/* And count its calls, for t->forecast, as survey_next(). Returns a negative errno if there will be no
 * forecast. */
int tracee_survey_next(struct tracee *t);
/* And measure its pace with these programs, by calls of pace_turn(). Returns false if that is not needed. */
bool tracee_pace_begin(struct tracee *t);
/* Finally: everything up to loaded BPF programs. The target is not modified. */
int tracee_open(struct tracee *t, struct diag *diag);
void tracee_free(struct tracee *t);
DEFINE_FREEP(struct tracee, tracee_free)

/*
 * Make a descendant that runs the same program a target, with the plan, proof and costs of `from`.
 * *half: NULL at first; the unfinished target, to be passed again after -EAGAIN, or freed. *spare:
 * a probe from tracee_open_spare(), which is taken if it is needed; NULL: there is none yet. -EAGAIN:
 * it is still being inspected, or waits for a probe, or it executes the program again and has not
 * loaded its interpreter. -ENOEXEC: it runs another program.
 */
int tracee_fork(const struct tracee *from, const struct tracee_news *news, struct tracee **half,
		struct probe **spare, struct tracee **ret, struct diag *diag);
/* Returns whether this process runs a program in the same file. */
bool tracee_same_program(const struct tracee *t, pid_t pid);
int tracee_open_spare(const struct tracee *from, struct probe **ret);
/* The same by probe_open_begin(). */
int tracee_load_spare(const struct tracee *from, struct probe **ret);
/* Report children from now on, in news. */
void tracee_follow(struct tracee *t);
/* Remove the breakpoints of a child that is not followed, soon. */
void tracee_sweep_child(struct tracee *t, pid_t child);

/* Set how it is observed, before it is opened. */
void tracee_set_opts(struct tracee *t, const struct target_opts *opts);

int tracee_start(struct tracee *t, struct diag *diag);
/* Returns whether it is traced, or its remaining records are being read. */
bool tracee_is_on(const struct tracee *t);
void tracee_clear(struct tracee *t);

/*
 * session/halt.c. stop: nothing is recorded from now on; the state is SESSION_STOPPING. end: the
 * same, because the process has ended (or runs another program). finish: detaches the probes and
 * reads the records until until_ns (CLOCK_MONOTONIC; 0: without a limit); returns whether all are
 * read, and the state is ATTACHED or ENDED. stops: whether it is stopped or about to be.
 */
void tracee_stop(struct tracee *t);
void tracee_end(struct tracee *t, const char *reason);
bool tracee_finish(struct tracee *t, uint64_t until_ns);
bool tracee_stops(const struct tracee *t);
/*
 * After a stop, when the state is ATTACHED already. settles: something is still being measured that
 * reports will use. settle: goes on with that, to be called every few milliseconds.
 */
bool tracee_settles(const struct tracee *t);
void tracee_settle(struct tracee *t);
/* Reference samples after a stop, if there were hardly any before; turn: see settle. */
void tracee_refer_again(struct tracee *t);
void tracee_refer_again_turn(struct tracee *t);

/* Free the probe of an ended target. Its ring must not be watched any more. */
void tracee_release(struct tracee *t);
void tracee_release_old(struct tracee *t);

/* For collector_windowed: its marks, session/windowed_marks.c ---------------------------------- */

/* Marks are to be chosen. The probe is attached. */
void windowed_marks_begin(struct tracee *t);
/*
 * Does the next step if marks are being chosen, and returns true: no window may open now. To be called
 * while none is open, when the gap so far is in the profile.
 */
bool windowed_marks_turn(struct tracee *t);
/* Returns in how many us windowed_turn() is to be called for them, at most `due`. */
uint64_t windowed_marks_due_us(const struct tracee *t, uint64_t due);
/* Returns whether marks are to be given up; an open window is to be closed then. */
bool windowed_marks_unfit(struct tracee *t);
/* Passes the number of marks to the profile, before a snapshot or the end. */
void windowed_marks_report(struct tracee *t);
/* The profile was cleared. */
void windowed_marks_clear(struct tracee *t);
/* The time that marks have taken from the target, ns. */
uint64_t windowed_marks_ns(const struct tracee *t);
/* Returns the estimated time of hits, samples, windows and their marks, in ns. */
uint64_t windowed_taken(const struct tracee *t);

/* Use the costs, if they have been measured by now. */
void tracee_take_cost(struct tracee *t);

/* Returns after how many us tracee_turn() must be called again, at the latest. */
uint64_t tracee_due_us(const struct tracee *t);
/* Periodic work besides draining. */
void tracee_turn(struct tracee *t);

/* For collectors: the initial stacks, the OS's run times at the end, the probes' time. */
void tracee_add_initial(struct tracee *t);
void tracee_runtimes(struct tracee *t);
void tracee_account(struct tracee *t); /* both of: */
void tracee_read_cpu(struct tracee *t);
void tracee_account_events(struct tracee *t);
/*
 * The overhead: everything that observing takes from the target. begin: observing starts now. read:
 * brings t->taken up to date, while observing. clear: forgets what was before; after a collector's
 * own clear. overhead: since then, see struct snapshot_target. lately: of the last seconds, as a
 * fraction of the target's own CPU time; 0: none, or not observed.
 */
void tracee_taken_begin(struct tracee *t);
void tracee_taken_read(struct tracee *t);
void tracee_taken_clear(struct tracee *t);
void tracee_overhead(const struct tracee *t, uint64_t *ret_overhead_ns, uint64_t *ret_own_cpu_ns);
double tracee_overhead_lately(const struct tracee *t);
/* Returns the time that samples have taken so far, ns. */
uint64_t tracee_samples_ns(const struct tracee *t);
/* Called about once a second; stops the target if its overhead exceeds --stop-above. */
void tracee_sample_overhead(struct tracee *t);
/* Subtract the present cost of hits from durations. */
void tracee_update_cost(const struct tracee *t);
void tracee_account_costs(struct tracee *t); /* the default account: each event has its cost */
void tracee_costs_change(struct tracee *t, double times); /* and what belongs to it */
/*
 * The cost of hits as it was measured: on this build; until then on another one, or on average in
 * the self-test; else a guess. Known.
 */
struct cost tracee_cost(const struct tracee *t);
struct probe_latency tracee_latency(const struct tracee *t);
/* Returns the number of samples dropped because they hit the probes' own time. */
uint64_t tracee_traps(const struct tracee *t);
/*
 * Returns the present cost of hits relative to the measured one, since that latency (NULL: since
 * the data was cleared).
 */
double tracee_scale(const struct tracee *t, const struct probe_latency *since);

/* Process the records in the ring until until_ns (0: all); returns their number. */
int tracee_drain(struct tracee *t, uint64_t until_ns);
/*
 * Process all records of up to now, without a time limit; a target being stopped is then stopped.
 */
void tracee_catch_up(struct tracee *t);
/* Returns the number of unread bytes in the ring. */
uint64_t tracee_pending(const struct tracee *t);
/* Returns the time (CLOCK_MONOTONIC) before which all records have been processed. */
uint64_t tracee_current_ns(const struct tracee *t);

/* Counters since the last clear. */
void tracee_losses(const struct tracee *t, uint64_t out[PYP_LOSS_MAX]);
void tracee_status(const struct tracee *t, struct session_status *ret);
/* Work to be done about once a second: the events-per-second figure, ended helpers. */
void tracee_sample_rate(struct tracee *t, uint64_t now_ns);
/* Add everything to a snapshot: *slot is this target's row in s->targets. */
int tracee_snapshot(struct tracee *t, struct snapshot *s, struct snapshot_target *slot);
/* The same, and clear it at the moment of the snapshot: records not read yet belong to the next one.
 * Mode sample only. */
int tracee_cut(struct tracee *t, struct snapshot *s, struct snapshot_target *slot);

/* Record a timeline (borrowed) until tracee_timeline_end(). */
int tracee_timeline_begin(struct tracee *t, struct timeline *timeline, struct diag *diag);
void tracee_timeline_end(struct tracee *t);
/* Have its probe, which may be a new one, report what the timeline needs. */
void tracee_report_raised(const struct tracee *t);
/* The same for a recorder of slow calls. A profile has one watcher: either of both. */
int tracee_slow_begin(struct tracee *t, struct slow *slow, struct diag *diag);
void tracee_slow_end(struct tracee *t);

/* session/gils.c: find the target's GILs for its probe. To be repeated, as interpreters start and
 * end. */
void tracee_find_gils(struct tracee *t);

/* For fork_exec.c ----------------------------------------------------------------------------- */

/* Take over the inspection's result: interpreter, exec id, description. */
void tracee_take_found(struct tracee *t);
void tracee_warn_text(struct tracee *t);
/* Identify the files of the program and of the interpreter: exe and file. 0 or a negative errno. */
int tracee_identify(struct tracee *t);
/* It executes, or has executed, a program: continue if it is the same one, or end. */
void tracee_executed(struct tracee *t);
/* The thread that owned the uprobe link has ended: attach through another one, or end. */
void tracee_hold_on(struct tracee *t);
/* Returns whether it still runs the program that was attached. */
bool tracee_unchanged(struct tracee *t);
/* Check that it is the process that was attached; else inspect it again, or end it: exit code 3. */
int tracee_check_program(struct tracee *t, struct diag *diag);
/* Returns the options of sampling for its probe. */
struct probe_sampling tracee_sampling(const struct tracee *t, const struct target_opts *opts,
				      const struct python *py);
/* Returns how many stacks of waiting threads its probe walks per second; 0: not this mode. */
uint16_t tracee_walks(const struct tracee *t, const struct python *py);
/* Tracing begins, or is interrupted, at ts. */
void tracee_begin(struct tracee *t, uint64_t ts);
void tracee_cease(struct tracee *t, uint64_t ts);
/* Process all records in the ring, and nothing else; until until_ns: returns whether it was all. */
void tracee_drain_all(struct tracee *t);
bool tracee_drain_until(struct tracee *t, uint64_t until_ns);
void tracee_warn(struct tracee *t);
int tracee_make_profile(struct tracee *t, struct diag *diag);
uint64_t tracee_unix_now(void);

uint64_t tracee_now(void); /* CLOCK_MONOTONIC, ns */

#endif
