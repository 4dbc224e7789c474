/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the set of sessions: set.c holds it, follow.c lets it grow by itself. */
#ifndef PYPROF_SESSION_SET_H
#define PYPROF_SESSION_SET_H

#include "session/recorders.h"
#include "session/session.h"
#include "session/tracee.h"

struct sd_event_source;
struct process_tree;
struct looking;

struct session {
	struct tracee *tracee;
	struct sessions *set;
	struct sd_event_source *end;	   /* the process's pidfd */
	struct sd_event_source *full;	   /* the ring's alarm */
	struct process_tree *process_tree; /* NULL: its children are not followed */
	bool over;			   /* it has ended, and that was reported */
};

/* A descendant that is to be followed. */
struct follow_task {
	struct session *origin; /* whose ring reported it */
	struct tracee_news news;
	struct tracee *half;	     /* see tracee_fork; owned; NULL: not begun */
	uint64_t retry_ns, until_ns; /* until_ns 0: not tried yet */
};

struct sessions {
	struct sd_event *event; /* borrowed */
	struct session_opts opts;
	struct sd_event_source *timer;
	struct sd_event_source *loaded; /* see probe_ready_fd() */
	enum { WINDOWS_UNKNOWN, WINDOWS_POSSIBLE, WINDOWS_IMPOSSIBLE } windows; /* on this kernel */
	struct session **v;
	size_t n;
	size_t next;   /* the next target to be drained, modulo n */
	uint32_t skip; /* see sessions_set_skip() */
	struct recorders timelines, slows;
	/* Being attached: see looking.c. */
	struct looking **looking;
	size_t nlooking;
	struct sessions_listener *listeners; /* borrowed */
	/* Following: */
	struct sd_event_source *work;
	struct follow_task *tasks;
	size_t ntasks;
	struct snapshot *folded; /* children that have ended; NULL: none were folded */
};

/* In timelines.c, slows.c. */
extern const struct recorder_kind timelines_kind, slows_kind;

/*
 * Evaluates triggers for the time between events; to be called periodically. A timeline whose trigger's
 * condition is met records nothing more, and ends when it is fetched.
 */
void timelines_check(struct sessions *ss);

/* Takes ownership of t, also on failure. */
int session_new(struct sessions *ss, struct tracee *t, struct session **ret, struct diag *diag);
void session_free(struct session *s);
DEFINE_FREEP(struct session, session_free)

struct session *sessions_find(const struct sessions *ss, pid_t pid);
int sessions_add(struct sessions *ss, struct session *s);
void sessions_remove(struct sessions *ss, struct session *s);

/* Returns -ESRCH and exit code 3: the process is not a target. */
int sessions_not_attached(pid_t pid, struct diag *diag);
/* Handle what drains of the rings found besides events. To be called after each drain. */
void sessions_after_drain(struct sessions *ss);
/* Drain again after this time (us) at the latest. Returns 0 or a negative errno. */
int sessions_arm(struct sessions *ss, uint64_t delay_us);

/* Begin to attach, or check whether that has ended: see sessions_look. */
struct looking_of {
	pid_t pid;
	const struct target_opts *opts;
	uint64_t since_ns;
	bool stopped; /* the process does not run: do not observe it */
};
int looking_begin(struct sessions *ss, const struct looking_of *of, struct diag *diag);
/* Go on with those that have waited for a probe to be loaded. */
void looking_loaded(struct sessions *ss);
/* Cancel attaching to this process. false: it is not being attached. */
bool looking_cancel(struct sessions *ss, pid_t pid);
/* The process for which this has ended; NULL: none, or it was cancelled. */
const struct tracee *looking_seen(const struct sessions *ss, pid_t pid);
/* The same, owned by the caller; NULL: none. */
struct tracee *looking_take(struct sessions *ss, pid_t pid, const struct target_opts *opts);
void looking_deinit(struct sessions *ss);

int follow_init(struct sessions *ss);
void follow_deinit(struct sessions *ss);

/* Follow the children of s from now on. To be called before s is started. */
int follow_begin(struct session *s, struct diag *diag);
/* Follow its existing children. */
void follow_look(struct session *s);
/* Follow the children that the last drain of its ring reported: soon; at once; those that failed,
 * again. */
void follow_take_news(struct session *s);
void follow_now(struct session *s);
void follow_retry(struct sessions *ss);
/* A probe may have been loaded for future children, or for one that waits for it. */
void follow_loaded(struct sessions *ss);

/* To be called when s has ended; when a target was stopped; before s is freed. */
void follow_ended(struct session *s);
void follow_stopped(struct sessions *ss);
void follow_leave(struct session *s);
/* Is s the target `from`, or was it followed from it or from one of its followed descendants? */
bool follow_stems_from(const struct session *s, const struct session *from);
/* Is anything left that was followed from it, or is to be? */
bool follow_goes_on(const struct session *s);

/* Remove the ended target with this pid, if there is one, because the pid is another process's now.
 * Its data is folded. -ENOMEM: everything is as it was. */
int follow_forget(struct sessions *ss, pid_t pid);
/* Remove a target and what was followed from it. */
void follow_detach(struct sessions *ss, struct session *s);
void follow_clear(struct sessions *ss);
/* Add the children that were folded to a snapshot of all. */
int follow_add_folded(const struct sessions *ss, struct snapshot **s);

#endif
