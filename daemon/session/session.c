// SPDX-License-Identifier: BSD-2-Clause
/*
 * The set of sessions and what drives them: a timer that drains every ring (records wake nobody by
 * themselves: a wake-up costs more than a probe), the rings' own alarm when more than half full,
 * and a pidfd per target. See session.h.
 */
#include "session/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/utsname.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "pyprof/version.h"
#include "session/timelines.h"
#include "session/tracee.h"

#define DRAIN_BUSY_US 4000u   /* between drains while events come */
#define DRAIN_IDLE_US 25000u  /* while none do */
#define DRAIN_BUDGET  250000u /* records per target and turn, so that clients are served as well */
#define PUMP_MS	      4
#define RATE_NS	      1000000000ull

struct session {
	struct tracee *tracee;
	struct sessions *set;
	sd_event_source *end;  /* the process's pidfd */
	sd_event_source *full; /* the ring's alarm */
};

struct sessions {
	struct sd_event *event; /* borrowed */
	struct session_opts opts;
	sd_event_source *timer;
	struct session **v;
	size_t n;
	struct timelines timelines;
};

static void session_free(struct session *s)
{
	if (!s)
		return;
	sd_event_source_disable_unref(s->end);
	sd_event_source_disable_unref(s->full);
	tracee_free(s->tracee);
	free(s);
}
DEFINE_FREEP(struct session, session_free)

/* ---- the loop's side --------------------------------------------------------------------- */

/* What is left to do when a target has come to its end: nothing to watch, and, if this is how it
 * was found out (news), somebody to tell. */
static void session_over(struct session *s, bool news)
{
	const struct session_opts *opts = &s->set->opts;

	s->end = sd_event_source_disable_unref(s->end);
	s->full = sd_event_source_disable_unref(s->full);
	if (news && opts->on_end)
		opts->on_end(opts->ctx, s->tracee->target->pid);
}

static int on_pidfd(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct session *s = ctx;
	bool was_ended;

	(void)source, (void)fd, (void)revents;
	was_ended = s->tracee->state == SESSION_ENDED;
	tracee_end(s->tracee, "exited");
	session_over(s, !was_ended);
	return 0;
}

/* Drain one target; true if there is more than one turn's worth. */
static bool session_turn(struct session *s, bool *busy)
{
	enum session_state before = s->tracee->state;
	int n = tracee_drain(s->tracee, DRAIN_BUDGET);
	uint64_t now = tracee_now();

	*busy |= n > 0;
	if (now - s->tracee->rate_ns >= RATE_NS)
		tracee_sample_rate(s->tracee, now);
	if (before != SESSION_ENDED && s->tracee->state == SESSION_ENDED)
		session_over(s, true);
	return n >= (int)DRAIN_BUDGET;
}

static int on_full(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	bool busy = false;

	(void)source, (void)fd, (void)revents;
	session_turn(ctx, &busy);
	return 0;
}

static bool sessions_tracing(const struct sessions *ss)
{
	for (size_t i = 0; i < ss->n; i++)
		if (ss->v[i]->tracee->state == SESSION_TRACING)
			return true;
	return false;
}

/* The timer runs only while something is traced: an idle daemon does not wake up. */
static int sessions_arm(struct sessions *ss, uint64_t delay_us)
{
	int r;

	if (!sessions_tracing(ss))
		return sd_event_source_set_enabled(ss->timer, SD_EVENT_OFF);
	r = sd_event_source_set_time_relative(ss->timer, delay_us);
	return r < 0 ? r : sd_event_source_set_enabled(ss->timer, SD_EVENT_ONESHOT);
}

/* Drain all; true if there is more than one turn's worth. */
static bool sessions_turn(struct sessions *ss, bool *busy)
{
	bool more = false;

	for (size_t i = 0; i < ss->n; i++)
		if (ss->v[i]->tracee->state == SESSION_TRACING)
			more |= session_turn(ss->v[i], busy);
	return more;
}

struct tracee *sessions_tracee(const struct sessions *ss, size_t i)
{
	return i < ss->n ? ss->v[i]->tracee : NULL;
}

struct timelines *sessions_timelines(struct sessions *ss)
{
	return &ss->timelines;
}

void sessions_pump(struct sessions *ss)
{
	bool busy = false;

	sessions_turn(ss, &busy);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct sessions *ss = ctx;
	bool busy = false, more;

	(void)source, (void)usec;
	more = sessions_turn(ss, &busy);
	timelines_forget(ss);
	return sessions_arm(ss, more ? 0 : busy ? DRAIN_BUSY_US : DRAIN_IDLE_US);
}

/* ---- the set ----------------------------------------------------------------------------- */

int sessions_new(struct sd_event *event, const struct session_opts *opts, struct sessions **ret,
		 struct diag *diag)
{
	_cleanup_(sessions_freep) struct sessions *ss = calloc(1, sizeof(*ss));
	int r;

	if (!ss)
		return diag_errno(diag, ENOMEM, "cannot start");
	ss->event = event;
	ss->opts = *opts;
	r = sd_event_add_time_relative(event, &ss->timer, CLOCK_MONOTONIC, DRAIN_IDLE_US, 500,
				       on_timer, ss);
	if (r < 0)
		return diag_errno(diag, -r, "cannot set a timer");
	sd_event_source_set_enabled(ss->timer, SD_EVENT_OFF);
	*ret = TAKE_PTR(ss);
	return 0;
}

void sessions_free(struct sessions *ss)
{
	if (!ss)
		return;
	for (size_t i = 0; i < ss->n; i++)
		session_free(ss->v[i]);
	ss->n = 0;
	timelines_close(ss);
	sd_event_source_disable_unref(ss->timer);
	free(ss->v);
	free(ss);
}

static struct session *sessions_find(const struct sessions *ss, pid_t pid)
{
	for (size_t i = 0; i < ss->n; i++)
		if (ss->v[i]->tracee->target->pid == pid)
			return ss->v[i];
	return NULL;
}

static int not_attached(pid_t pid, struct diag *diag)
{
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS,
			"`pyprofctl status` lists the targets, `pyprofctl attach PID` adds one",
			"process %d is not attached", pid);
}

static void sessions_remove(struct sessions *ss, struct session *s)
{
	for (size_t i = 0; i < ss->n; i++) {
		if (ss->v[i] != s)
			continue;
		memmove(&ss->v[i], &ss->v[i + 1], (ss->n - i - 1) * sizeof(*ss->v));
		ss->n--;
		session_free(s);
		return;
	}
}

static int sessions_reserve(struct sessions *ss)
{
	struct session **v = realloc(ss->v, (ss->n + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	ss->v = v;
	return 0;
}

static int session_watch(struct session *s, struct diag *diag)
{
	struct sd_event *event = s->set->event;
	int r;

	r = sd_event_add_io(event, &s->end, s->tracee->target->pidfd, EPOLLIN, on_pidfd, s);
	/* Edge-triggered: a ring with anything in it counts as readable, but only its alarm is
	 * news. */
	if (r == 0)
		r = sd_event_add_io(event, &s->full, probe_ring_fd(s->tracee->probe),
				    EPOLLIN | EPOLLET, on_full, s);
	return r < 0 ? diag_errno(diag, -r, "cannot watch process %d", s->tracee->target->pid) : 0;
}

int sessions_attach(struct sessions *ss, pid_t pid, bool start, struct diag *diag)
{
	_cleanup_(session_freep) struct session *s = NULL;
	struct session *old = sessions_find(ss, pid);
	int r;

	if (old && old->tracee->state != SESSION_ENDED)
		return diag_set(diag, -EEXIST, PYP_EXIT_BUSY, "`pyprofctl start` resumes tracing",
				"process %d is attached already", pid);
	s = calloc(1, sizeof(*s));
	if (!s || sessions_reserve(ss) < 0)
		return diag_errno(diag, ENOMEM, "cannot attach to %d", pid);
	s->set = ss;
	r = tracee_open(pid, &ss->opts, &s->tracee, diag);
	if (r == 0)
		r = session_watch(s, diag);
	if (r == 0 && start)
		r = tracee_start(s->tracee, diag);
	if (r < 0)
		return r;
	/* The pid of a process that has ended belongs to a new one now. */
	if (old)
		sessions_remove(ss, old);
	ss->v[ss->n++] = TAKE_PTR(s);
	sessions_arm(ss, DRAIN_BUSY_US);
	return 0;
}

int sessions_detach(struct sessions *ss, pid_t pid, struct diag *diag)
{
	struct session *s = sessions_find(ss, pid);

	if (!s)
		return not_attached(pid, diag);
	sessions_remove(ss, s);
	return 0;
}

int sessions_start(struct sessions *ss, pid_t pid, struct diag *diag)
{
	struct session *one = pid ? sessions_find(ss, pid) : NULL;
	int r = 0;

	if (pid && !one)
		return not_attached(pid, diag);
	for (size_t i = 0; i < ss->n && r == 0; i++) {
		if (pid ? ss->v[i] != one : ss->v[i]->tracee->state == SESSION_ENDED)
			continue;
		r = tracee_start(ss->v[i]->tracee, diag);
	}
	sessions_arm(ss, DRAIN_BUSY_US);
	return r;
}

/* Apply fn to one target or to all. */
static int sessions_each(struct sessions *ss, pid_t pid, void (*fn)(struct tracee *),
			 struct diag *diag)
{
	if (pid && !sessions_find(ss, pid))
		return not_attached(pid, diag);
	for (size_t i = 0; i < ss->n; i++)
		if (!pid || ss->v[i]->tracee->target->pid == pid)
			fn(ss->v[i]->tracee);
	return 0;
}

int sessions_stop(struct sessions *ss, pid_t pid, struct diag *diag)
{
	return sessions_each(ss, pid, tracee_stop, diag);
}

int sessions_clear(struct sessions *ss, pid_t pid, struct diag *diag)
{
	return sessions_each(ss, pid, tracee_clear, diag);
}

/* ---- what they say ----------------------------------------------------------------------- */

static uint64_t unix_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void snapshot_provenance(const struct sessions *ss, struct snapshot *s)
{
	struct utsname u;

	s->program = "pyprofd " PYPROF_VERSION;
	s->taken_unix_ns = unix_now();
	s->clock = ss->opts.clock;
	if (uname(&u) < 0)
		return;
	s->host = snapshot_str(s, u.nodename);
	s->kernel = snapshot_str(s, u.release);
}

/* A target that was attached to just now is still being measured; meanwhile its ring fills. */
static void wait_for_costs(struct sessions *ss, pid_t pid)
{
	for (size_t i = 0; i < ss->n; i++) {
		struct tracee *t = ss->v[i]->tracee;

		if ((pid && t->target->pid != pid) || !t->calibration)
			continue;
		while (!calibration_wait(t->calibration, PUMP_MS))
			sessions_pump(ss);
	}
}

int sessions_snapshot(struct sessions *ss, pid_t pid, struct snapshot **ret, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_new();
	int r = 0;

	if (pid && !sessions_find(ss, pid))
		return not_attached(pid, diag);
	if (s)
		s->targets = snapshot_alloc(s, ss->n ? ss->n : 1, sizeof(*s->targets));
	if (!s || !s->targets)
		return diag_errno(diag, ENOMEM, "cannot take a snapshot");
	snapshot_provenance(ss, s);
	wait_for_costs(ss, pid);
	for (size_t i = 0; i < ss->n && r == 0; i++) {
		if (pid && ss->v[i]->tracee->target->pid != pid)
			continue;
		r = tracee_snapshot(ss->v[i]->tracee, s, &s->targets[s->ntargets]);
		s->ntargets++;
	}
	if (r < 0)
		return diag_errno(diag, -r, "cannot take a snapshot");
	*ret = TAKE_PTR(s);
	return 0;
}

size_t sessions_count(const struct sessions *ss)
{
	return ss->n;
}

void sessions_status(struct sessions *ss, size_t i, struct session_status *ret)
{
	tracee_status(ss->v[i]->tracee, ret);
}

int sessions_status_pid(struct sessions *ss, pid_t pid, struct session_status *ret,
			struct diag *diag)
{
	struct session *s = sessions_find(ss, pid);

	if (!s)
		return not_attached(pid, diag);
	tracee_status(s->tracee, ret);
	return 0;
}

const char *session_state_name(enum session_state s)
{
	switch (s) {
	case SESSION_ATTACHED:
		return "attached";
	case SESSION_TRACING:
		return "tracing";
	case SESSION_ENDED:
		return "ended";
	}
	return "?";
}
