/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions: everything pyprofd holds. One session per target process: target → python → plan →
 * probe → profile. The server serves the set of them. One bad target never affects another. Driven
 * by the daemon's event loop (sd-event): timers drain rings, pidfds report the ends of processes.
 */
#ifndef PYPROF_SESSION_SESSION_H
#define PYPROF_SESSION_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/target_opts.h"
#include "pyprof/bpf_abi.h"
#include "session/forecast.h"
#include "session/workers.h"
#include "slow/slow.h"
#include "snapshot/snapshot.h"

struct sd_event;
struct sessions;

enum session_state {
	SESSION_ATTACHED, /* known and checked, probes off */
	SESSION_TRACING,  /* probes on */
	SESSION_STOPPING, /* nothing more is recorded; the recorded data is still being read */
	SESSION_ENDED,	  /* the process has ended; data is kept */
};

struct session_opts {
	struct target_opts target; /* of targets that are attached without options of their own */
	enum snapshot_clock clock;
	size_t max_children; /* followed and alive at one time; 0: SESSION_MAX_CHILDREN */
	/* Called when a target has ended by itself (may be NULL). */
	void (*on_end)(void *ctx, pid_t pid);
	void *ctx;
};

#define SESSION_MAX_CHILDREN 64

int sessions_new(struct sd_event *event, const struct session_opts *opts, struct sessions **ret,
		 struct diag *diag);
void sessions_free(struct sessions *ss); /* detaches everything */
DEFINE_FREEP(struct sessions, sessions_free)

/*
 * Attach, which takes up to some seconds, in the event loop. look: begins, or checks whether that
 * has ended. -EINPROGRESS: helper processes inspect and prove the target, or it is being sampled;
 * when that has ended, listeners are called; then call this again. 0: call sessions_attach now,
 * which does not wait. since_ns: when the attach was requested (CLOCK_MONOTONIC; 0: now).
 * -ECANCELED: it was cancelled after that, by sessions_detach or sessions_cancel_attaching.
 */
int sessions_look(struct sessions *ss, pid_t pid, const struct target_opts *opts, uint64_t since_ns,
		  struct diag *diag);
/* The same with the set's own options, for a process that is stopped: it is not sampled, and there
 * is no forecast. */
int sessions_look_stopped(struct sessions *ss, pid_t pid, uint64_t since_ns, struct diag *diag);
/*
 * Then: attach; start: attach the probes at once. opts NULL: the set's own (sessions_target_opts
 * returns a copy). Exit code 7: the process is already attached, or data of an ended process with
 * this pid is still kept.
 */
int sessions_attach(struct sessions *ss, pid_t pid, bool start, const struct target_opts *opts,
		    struct diag *diag);
/* Returns true if this process is not, or no longer, being attached. */
bool sessions_looked(const struct sessions *ss, pid_t pid);
/*
 * Called when sessions_look() is done for any process, or was cancelled. It must not call functions
 * of the sessions; the event loop can do so later. Borrowed until sessions_unlisten().
 */
struct sessions_listener {
	void (*looked)(void *ctx);
	void *ctx;
	struct sessions_listener *next; /* private */
};
void sessions_listen(struct sessions *ss, struct sessions_listener *l);
void sessions_unlisten(struct sessions *ss, struct sessions_listener *l);
/* The expected overhead of these options, once sessions_look() is done. */
struct session_forecast {
	struct forecast forecast;
	double cost;	/* of these options, as a fraction of the target's own CPU time */
	uint32_t limit; /* of these options, percent; 0: none */
	struct workers_use workers; /* children that these options leave out; n 0: none */
	char name[64];		    /* of its program */
};
struct session_forecast sessions_forecast(const struct sessions *ss, pid_t pid,
					  const struct target_opts *opts);

/* Cancel all attaching that sessions_look() has begun. */
void sessions_cancel_attaching(struct sessions *ss);

/* A process that is being attached: sessions_look() has begun it and is not done. */
struct session_attaching {
	pid_t pid;
	/* static: "planning", "verifying", "loading", "sampling", "forecasting" or "pacing" */
	const char *step;
};
/* The i-th; false: there are fewer. */
bool sessions_attaching(const struct sessions *ss, size_t i, struct session_attaching *ret);
struct target_opts sessions_target_opts(const struct sessions *ss);
/* Forget a target, its followed descendants and their data, or cancel attaching to it. -ESRCH (exit
 * code 3) if it is not attached. */
int sessions_detach(struct sessions *ss, pid_t pid, struct diag *diag);
/* Returns whether a target (pid) would be forgotten by detaching another one, or the same. */
bool sessions_detached_with(const struct sessions *ss, pid_t pid, pid_t detached);
/*
 * Start and stop a target and its followed descendants, or all targets (pid 0); repeating it is no
 * error. start continues after a failure and returns the first error; failed (may be NULL) is
 * called for each target that could not be started. Exit code 3: the target has ended, or all have.
 */
typedef void (*sessions_failed_fn)(void *ctx, pid_t pid, int err, const struct diag *diag);
int sessions_start_each(struct sessions *ss, pid_t pid, sessions_failed_fn failed, void *ctx,
			struct diag *diag);
static inline int sessions_start(struct sessions *ss, pid_t pid, struct diag *diag)
{
	return sessions_start_each(ss, pid, NULL, NULL, diag);
}
int sessions_stop(struct sessions *ss, pid_t pid, struct diag *diag);
/* pid 0: all. */
int sessions_clear(struct sessions *ss, pid_t pid, struct diag *diag);

/* Read the rings for a turn, before work that takes longer. */
void sessions_read_rings(struct sessions *ss);

/*
 * current: returns whether all records from before since_ns (CLOCK_MONOTONIC) of one target (pid) or
 * of all (0) have been processed, and the probes' cost is known; after a stop, also its pace.
 * catch_up: works on that until until_ns and returns the same; the event loop does the remainder.
 */
bool sessions_current(const struct sessions *ss, pid_t pid, uint64_t since_ns);
bool sessions_catch_up(struct sessions *ss, pid_t pid, uint64_t since_ns, uint64_t until_ns);
/* Returns whether this target, or any (0), is being stopped. */
bool sessions_stopping(const struct sessions *ss, pid_t pid);

/*
 * Take a snapshot, with provenance, of one target (pid) or of all (0), of the records read so far.
 */
int sessions_snapshot(struct sessions *ss, pid_t pid, struct snapshot **ret, struct diag *diag);

/*
 * Take a snapshot of one target since the previous cut, or since its start. *last (NULL at first)
 * belongs to the caller: what the next cut of a target that cannot be cleared counts from. *ret is
 * NULL if nothing was recorded. Of a target that is being stopped, nothing more is read.
 */
int sessions_cut(struct sessions *ss, pid_t pid, struct snapshot **last, struct snapshot **ret,
		 struct diag *diag);

/* Of all light targets, present and future: take one of so many samples, see probe_set_skip(). */
void sessions_set_skip(struct sessions *ss, uint32_t one_in);

/* Returns whether this target and its followed descendants have ended. */
bool sessions_over(const struct sessions *ss, pid_t pid);

/*
 * Timelines: every call and return of a window of time, fetched piece by piece while it is open
 * (see timeline/wire.h for the contents). pid 0: of all targets. Exit code 7: a timeline of that
 * target is already being recorded. A timeline that no client fetches is dropped after 30 seconds.
 */
struct sessions_timeline {
	uint64_t duration_ns; /* 0: until sessions_timeline_end */
	uint64_t buffer;      /* limit of bytes not fetched yet; 0: the default */
	uint64_t keep_ns;     /* only this much of the past, available at the end; 0: everything */
	/* the condition (timeline/trigger.h) that ends it, with keep_ns; NULL: none */
	const char *trigger;
};
int sessions_timeline_begin(struct sessions *ss, pid_t pid, const struct sessions_timeline *opts,
			    uint32_t *ret_id, struct diag *diag);
/*
 * Get the next piece, owned by the caller; NULL: none at present. The last one ends the timeline.
 */
int sessions_timeline_read(struct sessions *ss, uint32_t id, char **ret_data, size_t *ret_n,
			   struct diag *diag);
/* Stop recording; recorded data can still be fetched. */
int sessions_timeline_end(struct sessions *ss, uint32_t id, struct diag *diag);

/* Stop recording all timelines, because the daemon is about to end. */
void sessions_timelines_end(struct sessions *ss);

struct sessions_timeline_status {
	uint32_t id;
	uint64_t waiting, dropped; /* bytes; calls and returns */
	bool recent, ended;	   /* of the recent past; it has ended */
};
/* The i-th; false: there are fewer. */
bool sessions_timeline_status(struct sessions *ss, size_t i, struct sessions_timeline_status *ret);

/*
 * Record slow calls of one target (pid), or of all (0), see slow/slow.h. Exit code 7: that target
 * is already being recorded. A recorder that no client reads is dropped after a minute.
 * opts->from_ns and from_unix_ns are set here.
 */
int sessions_slow_begin(struct sessions *ss, pid_t pid, const struct slow_opts *opts,
			uint32_t *ret_id, struct diag *diag);
/* Get the calls kept so far, with "id"; the caller owns *ret. */
int sessions_slow_read(struct sessions *ss, uint32_t id, enum slow_detail detail, json_t **ret,
		       struct diag *diag);
int sessions_slow_end(struct sessions *ss, uint32_t id, struct diag *diag);

struct session_status {
	pid_t pid;
	struct forecast forecast;
	enum session_state state;
	struct mode_choice mode; /* rate: of samples; 0: none are taken */
	bool light;		 /* of continuous mode, which clears its profile at each cut */
	char cmdline[256], python_version[32], python_file[256], build_id[41];
	uint64_t pending; /* bytes recorded by the probes and not read yet */
	uint64_t traced_ns, events, lost, unmatched, unseen, unstarted;
	uint64_t cpu_ns, rss;  /* of the process: CPU time; resident bytes, 0: it has ended */
	uint64_t events_per_s; /* over the last second or so */
	double overhead;       /* of the last seconds; 0: none, or it is not observed now */
	uint64_t overhead_ns, own_cpu_ns; /* in all, see struct snapshot_target */
	struct snapshot_windows windows;
	uint64_t threads; /* all that were seen */
	uint32_t funcs, nodes;
	bool over;    /* see sessions_over */
	bool follows; /* see struct snapshot_target for these */
	pid_t parent;
	uint32_t execs;
	uint64_t fork_gap_ns, exec_gap_ns;
	struct snapshot_children children;
	uint64_t losses[PYP_LOSS_MAX];
	char end_reason[64];   /* "exited", "executed another program", … */
	const char *mechanism; /* how the probes are attached: see probe_mechanism_name */
	char self_test[256];   /* see verify_text */
	char warning[512];     /* e.g. a PEP 523 evaluator, or "" */
};

size_t sessions_count(const struct sessions *ss);
/* Get the status of the i-th target, in order of attaching. */
void sessions_status(struct sessions *ss, size_t i, struct session_status *ret);
/* The overhead of all targets, and of the children that were folded: sums of those in their status. */
void sessions_overhead(const struct sessions *ss, uint64_t *ret_overhead_ns,
		       uint64_t *ret_own_cpu_ns);
int sessions_status_pid(struct sessions *ss, pid_t pid, struct session_status *ret,
			struct diag *diag);
const char *session_state_name(enum session_state s);

#endif
