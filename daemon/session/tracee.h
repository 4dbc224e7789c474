/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One traced process: target, its Python, the plan, the probe and the profile, and the life they
 * share: attached → tracing ⇄ attached → ended. Owns everything below it. It has no event loop of
 * its own: the set of sessions calls tracee_drain and tells it of its end.
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
#include "session/reference.h"
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

/* Forks that one drain may bring; what does not fit is counted as failed. */
#define TRACEE_MAX_NEWS 256

/* A descendant was forked, or has executed a program before it became a target. */
struct tracee_news {
	pid_t pid, parent;
	uint64_t ts;
	bool executed;
};

/* How a target is watched that probes may not take more of than a share (session/windowed.c). */
struct windowed {
	struct windows ctl;
	uint64_t since_ns;		       /* the gap is counted up to here; 0: there is none */
	uint64_t since_cpu_ns, since_taken_ns; /* its CPU time, and the probes' */
	uint64_t part_ns;		       /* an open window was taken over up to here */
	uint64_t opened_overhead_ns;	       /* events' time when the window was opened */
	struct probe_latency opened_latency;
	double opened_scale; /* of the costs that it was limited by */
	uint64_t begun_ns;   /* started, while tracing */
	uint64_t span_ns;    /* of the times before that */
	uint64_t links_ns;   /* what opening and closing took, about */
	/* It was closed then, and what it recorded is still being read; 0: not so. */
	uint64_t closed_ns, closed_cpu_ns;
};

struct tracee {
	struct target *target;
	struct python *python;
	struct plan plan;
	struct probe *probe;	 /* NULL: it has ended */
	struct probe *old_probe; /* the one before; its ring may still be watched: see set.c */
	uint64_t old_losses[PYP_LOSS_MAX];
	struct probe_latency old_latency,
		latency_base;			      /* of the probes before; at the last clear */
	uint64_t old_traps, traps_base, samples_base; /* likewise, of samples: see tracee_traps */
	enum probe_mechanism mechanism;
	/* The thread that the process was held by has ended: see tracee_hold_on. */
	bool lost_hold;
	uint64_t lost_hold_ns, until_ns, hold_gap_ns;
	struct calibration *calibration; /* NULL: not possible, or not needed */
	struct cost cost;		 /* as far as known */
	bool has_started;		 /* tracing has begun, once at least */
	bool cost_taken;		 /* the calibration's result is in it */
	struct profile *profile;
	/* Reads its files and its memory for us; NULL: none does. While it is looked into after an
	 * exec: who does that. */
	struct inspect *inspect, *looking;
	struct inspect_result found; /* while it is being opened; found_err: -EINPROGRESS, not yet */
	struct diag found_diag;
	int found_err;
	struct target_opts opts;
	const struct collector *collector;
	struct windowed windowed; /* collector_windowed's */
	struct counting counting; /* collector_count's */
	struct breaker breaker;
	uint64_t start_cpu_ns;	     /* its CPU time when tracing began */
	bool no_calls;		     /* it has used a second since, and no call was ever seen */
	uint64_t period_ns;	     /* of samples */
	struct reference *reference; /* while it is being opened */
	struct survey *survey;	     /* then, too */
	struct workers *workers;     /* then, too; NULL: unknown */
	struct forecast forecast;
	struct selftest *selftest; /* while it is verified */
	bool prepared;		   /* see tracee_prepare; then: */
	int prepared_err;
	struct diag prepared_diag;
	uint64_t samples_before; /* that it took */
	enum session_state state;
	char end_reason[64];
	char warning[256];    /* see tracee_warn_text */
	char hidden[256];     /* see python_hidden */
	bool hidden_misses;   /* likewise */
	uint64_t hidden_ns;   /* when that was found */
	uint64_t late_before; /* questions that inspectors before did not answer in time */
	bool misses_calls;    /* likewise, since attached or cleared */
	uint64_t warned_ns;   /* when that was looked at */
	unsigned int breaks;  /* at its sites, when it was opened: see strangers.h */
	char strangers[STRANGERS_TEXT];
	char self_test[256];	    /* see verify_text */
	uint64_t started_ns;	    /* CLOCK_MONOTONIC of the running window, while tracing */
	uint64_t first_ns, last_ns; /* first attached; ended */
	uint64_t first_unix_ns;
	uint64_t traced_ns; /* of the windows that are over */
	uint64_t halt_ns;   /* SESSION_STOPPING: since when nothing is recorded */
	bool ends;	    /* … because it has come to its end */
	/* What is in the ring up to goal_at was recorded before goal_ns (0: none is set), and all
	 * before current_ns has been handled. */
	uint64_t goal_at, goal_ns, current_ns;
	uint64_t decode_errors;
	uint64_t base[PYP_LOSS_MAX]; /* the losses at the last clear */
	uint64_t events_seen;	     /* at the last rate sample */
	uint64_t rate_ns, events_per_s;
	uint64_t end_losses[PYP_LOSS_MAX]; /* when it has ended */
	uint64_t sweep_ns; /* when forked children are due to be swept; 0: none are */
	pid_t sweep_child;
	uint64_t cpu_ns;			/* the process's CPU time, as last read */
	uint64_t overhead_ns;			/* what probes took of it, about */
	uint64_t overhead_events;		/* so many events are in that */
	uint64_t rate_cpu_ns, rate_overhead_ns; /* at the last rate sample */
	double overhead;	   /* in the last second: probes' time as a share of the rest */
	struct timeline *timeline; /* borrowed; NULL: none is taken */
	uint32_t timeline_source;
	struct slow *slow; /* borrowed; NULL: slow calls are not recorded */
	uint32_t slow_source;
	/* Which program at which addresses, and the files it and the interpreter are in. */
	uint64_t exec_id;
	uint32_t gils; /* ranges of memory that are known to be GILs' */
	struct target_file exe, file;
	/* An exec that was seen: when, by a thread that was not the leader, and until when to look
	 * for the interpreter in what it has become. */
	uint64_t exec_ns, exec_until_ns, exec_retry_ns;
	bool exec_other;
	bool executed; /* … and what came of it has not been looked at */
	uint32_t execs;
	uint64_t exec_gap_ns;
	/* Following: what it is a child of, and what is known of its own. */
	pid_t parent;
	uint64_t forked_ns, fork_gap_ns;
	struct snapshot_children children;
	struct tracee_news news[TRACEE_MAX_NEWS];
	size_t nnews;
};

/*
 * Attaching, in steps, none of which blocks for long; session/looking.c drives them.
 *
 * look: a helper process begins to inspect the target. When inspect_fd(t->inspect) is readable, ask
 * tracee_looked().
 */
int tracee_look(pid_t pid, const struct target_opts *opts, struct tracee **ret, struct diag *diag);
bool tracee_looked(struct tracee *t);
/* Then: check what was found, and begin the self-test (verify/selftest.h) if it is wanted.
 * tracee_open() returns the error. */
void tracee_prepare(struct tracee *t);
/* Has the self-test ended, or is there none? If not, ask again when the descriptor is readable, or at
 * the deadline (CLOCK_MONOTONIC ns); both may change with each question. */
bool tracee_verified(struct tracee *t);
int tracee_verify_fd(const struct tracee *t);
uint64_t tracee_verify_deadline(const struct tracee *t);
/* Then: begin to measure the probes' cost, if it has to be known from the first window on.
 * calibrated: it is known, or not needed; if not, ask again when calibration_fd(t->calibration) is
 * readable, or at its deadline. */
void tracee_calibrate(struct tracee *t);
bool tracee_calibrated(const struct tracee *t);
/* Then, if it is to be traced: sample it for REFERENCE_NS, and until tracee_refer_end. A
 * negative errno: it is not sampled. */
int tracee_refer(struct tracee *t);
void tracee_refer_end(struct tracee *t);
/* And count its calls, for t->forecast: load what that needs, then, after what was before, as
 * survey_next. A negative errno: there is no forecast. */
int tracee_survey(struct tracee *t);
int tracee_survey_next(struct tracee *t);
/* At last: everything up to loaded programs. The target is not changed. */
int tracee_open(struct tracee *t, struct diag *diag);
void tracee_free(struct tracee *t);
DEFINE_FREEP(struct tracee, tracee_free)

/*
 * A descendant of a target that runs the same program: the same plan, proof and costs; nothing is
 * computed again. *half: NULL at first; what is begun and not finished, to be passed again after
 * -EAGAIN or freed. *spare: a probe from tracee_open_spare, taken if it is needed; NULL: one is
 * opened. -EAGAIN: it is still looked into, or it has executed that program anew, and its
 * interpreter is not there yet. -ENOEXEC: it is another program.
 */
int tracee_fork(const struct tracee *from, const struct tracee_news *news, struct tracee **half,
		struct probe **spare, struct tracee **ret, struct diag *diag);
/* Is this process's program in the same file? */
bool tracee_same_program(const struct tracee *t, pid_t pid);
int tracee_open_spare(const struct tracee *from, struct probe **ret);
/* Tell of children from now on, in news. */
void tracee_follow(struct tracee *t);
/* A child that is not followed loses its breakpoints, soon. */
void tracee_sweep_child(struct tracee *t, pid_t child);

/* How it is observed; chosen before it is opened. */
void tracee_set_opts(struct tracee *t, const struct target_opts *opts);

int tracee_start(struct tracee *t, struct diag *diag);
/* Tracing, or what is left of it is being read. */
bool tracee_is_on(const struct tracee *t);
void tracee_clear(struct tracee *t);

/*
 * session/halt.c. stop: from now on nothing is recorded; the state is SESSION_STOPPING. end: the
 * same, because the process has gone (or is another program now). finish: probes off, and what was
 * recorded is read, until until_ns (CLOCK_MONOTONIC; 0: however long it takes). true: all of it is,
 * and the state is ATTACHED or ENDED, or was no other. stops: it was stopped, or is about to be.
 */
void tracee_stop(struct tracee *t);
void tracee_end(struct tracee *t, const char *reason);
bool tracee_finish(struct tracee *t, uint64_t until_ns);
bool tracee_stops(const struct tracee *t);

/* What has ended needs no probe: its memory goes back. Nobody may watch its ring any more. */
void tracee_release(struct tracee *t);
void tracee_release_old(struct tracee *t);

/* What watching has taken in all, about. */
uint64_t windowed_taken(const struct tracee *t);

/* If its costs have been measured by now, they count. */
void tracee_take_cost(struct tracee *t);

/* In how many us tracee_turn is to be called again, at the latest. */
uint64_t tracee_due_us(const struct tracee *t);
/* What is to be done now and then besides draining. */
void tracee_turn(struct tracee *t);

/* For collectors: the stacks at the beginning, the OS's word at the end, what probes take. */
void tracee_add_initial(struct tracee *t);
void tracee_runtimes(struct tracee *t);
void tracee_account(struct tracee *t); /* both of: */
void tracee_read_cpu(struct tracee *t);
void tracee_account_events(struct tracee *t);
/* The share that they took in the last second; stops the target if that is too much for too long. */
void tracee_sample_overhead(struct tracee *t);
/* What is done where the collector has no account of its own: each event has its cost. */
/* Have durations recorded without what hits cost at the moment. */
void tracee_update_cost(const struct tracee *t);
void tracee_account_costs(struct tracee *t);
struct cost tracee_cost(const struct tracee *t); /* as they were measured */
struct probe_latency tracee_latency(const struct tracee *t);
/* Samples that were dropped because they are of the probes' time. */
uint64_t tracee_traps(const struct tracee *t);
/* How much dearer hits were than that, since the latency was so; 0: since the data was cleared. */
double tracee_scale(const struct tracee *t, const struct probe_latency *since);

/* Handle what is in the ring now, until until_ns (0: all of it); the number of records. */
int tracee_drain(struct tracee *t, uint64_t until_ns);
/* All that was recorded until now, however long that takes; one that is being stopped is, then. */
void tracee_catch_up(struct tracee *t);
/* Bytes in the ring that wait to be handled. */
uint64_t tracee_pending(const struct tracee *t);
/* Everything that was recorded before this moment has been handled (CLOCK_MONOTONIC). */
uint64_t tracee_current_ns(const struct tracee *t);

/* Counters since the last clear. */
void tracee_losses(const struct tracee *t, uint64_t out[PYP_LOSS_MAX]);
void tracee_status(const struct tracee *t, struct session_status *ret);
/* What is to be done once a second or so: the events-per-second figure, ended helpers. */
void tracee_sample_rate(struct tracee *t, uint64_t now_ns);
/* Add everything to a snapshot: *slot is this target's row in s->targets. */
int tracee_snapshot(struct tracee *t, struct snapshot *s, struct snapshot_target *slot);

/* Let a timeline (borrowed) watch, until it is told to end. */
int tracee_timeline_begin(struct tracee *t, struct timeline *timeline, struct diag *diag);
void tracee_timeline_end(struct tracee *t);
/* The same for a recorder of slow calls. A profile has one watcher: either of both. */
int tracee_slow_begin(struct tracee *t, struct slow *slow, struct diag *diag);
void tracee_slow_end(struct tracee *t);

/* session/gils.c: find the target's GILs, for its probe, now that it has one and memory to look into.
 * Again now and then: interpreters come and go. */
void tracee_find_gils(struct tracee *t);

/* For fork_exec.c ----------------------------------------------------------------------------- */

/* What was found is the target's: its interpreter, its exec id and what it says of itself. */
void tracee_take_found(struct tracee *t);
void tracee_warn_text(struct tracee *t);
/* Which files it and its interpreter are in: fills exe and file. 0 or a negative errno. */
int tracee_identify(struct tracee *t);
/* It has executed, or is at it: go on with the same program, or end. */
void tracee_executed(struct tracee *t);
/* The thread that it was held by has ended, others go on: hold it by another one, or end. */
void tracee_hold_on(struct tracee *t);
/* Is it what it was when it was attached? Else find it anew, or end it: exit code 3. */
int tracee_check_program(struct tracee *t, struct diag *diag);
/* What its probe is told about sampling; between windows, where that is possible. */
struct probe_sampling tracee_sampling(const struct tracee *t, const struct target_opts *opts,
				      const struct python *py);
/* Tracing begins at ts, and ends for now. initial: what threads do now. */
void tracee_begin(struct tracee *t, uint64_t ts);
void tracee_cease(struct tracee *t, uint64_t ts);
/* Handle all that is in the ring, and nothing else; the same until until_ns: true if it was all. */
void tracee_drain_all(struct tracee *t);
bool tracee_drain_until(struct tracee *t, uint64_t until_ns);
void tracee_warn(struct tracee *t);
int tracee_make_profile(struct tracee *t, struct diag *diag);
uint64_t tracee_unix_now(void);

uint64_t tracee_now(void); /* CLOCK_MONOTONIC, ns */

#endif
