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
	bool over;			   /* it has ended, and that was told */
};

/* A descendant that is to be followed. */
struct follow_task {
	struct session *origin; /* whose ring told of it */
	struct tracee_news news;
	struct tracee *half; /* see tracee_fork; owned; NULL: not begun */
	uint64_t retry_ns, until_ns;
};

struct sessions {
	struct sd_event *event; /* borrowed */
	struct session_opts opts;
	struct sd_event_source *timer;
	struct session **v;
	size_t n;
	size_t next; /* whose turn it is to be drained, modulo n */
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

/* Takes t, also when it fails. */
int session_new(struct sessions *ss, struct tracee *t, struct session **ret, struct diag *diag);
void session_free(struct session *s);
DEFINE_FREEP(struct session, session_free)

struct session *sessions_find(const struct sessions *ss, pid_t pid);
int sessions_add(struct sessions *ss, struct session *s);
void sessions_remove(struct sessions *ss, struct session *s);

/* -ESRCH and exit 3: it is none of the targets. */
int sessions_not_attached(pid_t pid, struct diag *diag);
/* Do what drains of the rings have led to: to be called after any drain. */
void sessions_settle(struct sessions *ss);
/* The next turn of draining comes after this time at the latest (us). 0 or a negative errno. */
int sessions_arm(struct sessions *ss, uint64_t delay_us);

/* Begin to attach, or check whether that has ended: see sessions_look. */
struct looking_of {
	pid_t pid;
	const struct target_opts *opts;
	uint64_t since_ns;
	bool stopped; /* the process does not run: do not observe it */
};
int looking_begin(struct sessions *ss, const struct looking_of *of, struct diag *diag);
/* Cancel attaching to this process. false: it is not being attached. */
bool looking_cancel(struct sessions *ss, pid_t pid);
/* One for which it is done; NULL: none, or it was cancelled. */
const struct tracee *looking_seen(const struct sessions *ss, pid_t pid);
/* One for which it is done, the caller's; NULL: none. */
struct tracee *looking_take(struct sessions *ss, pid_t pid, const struct target_opts *opts);
void looking_deinit(struct sessions *ss);

int follow_init(struct sessions *ss);
void follow_deinit(struct sessions *ss);

/* From now on the children of s are followed. Before it is started. */
int follow_begin(struct session *s, struct diag *diag);
/* Follow the children that it has already. */
void follow_look(struct session *s);
/* What the last drain of its ring told is to be done: soon, at once, again. */
void follow_take_news(struct session *s);
void follow_now(struct session *s);
void follow_retry(struct sessions *ss);

/* It has ended; something was stopped; it is about to be freed. */
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
