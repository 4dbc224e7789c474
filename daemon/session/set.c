// SPDX-License-Identifier: BSD-2-Clause
/*
 * The set of sessions and what drives them: a timer that drains every ring (records wake nobody by
 * themselves: a wake-up costs more than a probe), the rings' own alarm when more than half full,
 * and a pidfd per target. See session.h.
 */
#include "session/set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "probe/probe.h"
#include "probe/sample_cost.h"
#include "session/collector.h"
#include "session/session.h"

#define DRAIN_BUSY_US  4000u   /* between drains while events come */
#define DRAIN_IDLE_US  25000u  /* while none do */
#define DRAIN_REST_US  100000u /* where nothing comes that is worth a wake-up: counting, sampling */
#define DRAIN_LIGHT_US 500000u /* while all targets are light */
/*
 * What draining may take before clients are served again, and how much of that one target gets before
 * the next one has its turn. Clients have the same priority in the event loop, so they get every other
 * of its iterations, however many events come.
 */
#define TURN_NS	 500000ull
#define SLICE_NS 250000ull
#define STOP_NS	 400000000ull /* what a stop may take before it is answered */
/* One whose ring holds more is not waited for: the daemon is behind, or has little CPU time. */
#define STOP_BYTES (4u << 20)
#define END_NS	   50000000ull /* what reading may take before a process that has ended is released */
#define RATE_NS	   1000000000ull

void session_free(struct session *s)
{
	if (!s)
		return;
	follow_leave(s);
	sd_event_source_disable_unref(s->end);
	sd_event_source_disable_unref(s->full);
	tracee_free(s->tracee);
	free(s);
}

/* ---- the loop's side --------------------------------------------------------------------- */

static int on_full(sd_event_source *source, int fd, uint32_t revents, void *ctx);

/* The target has ended: stop watching it, and report its end. */
static void session_over(struct session *s)
{
	const struct session_opts *opts = &s->set->opts;

	s->over = true;
	s->end = sd_event_source_disable_unref(s->end);
	s->full = sd_event_source_disable_unref(s->full);
	tracee_release(s->tracee);
	follow_ended(s);
	if (opts->on_end)
		opts->on_end(opts->ctx, s->tracee->target->pid);
}

/* Edge-triggered: a ring with anything in it counts as readable, but only its alarm is news. */
static int session_watch_ring(struct session *s)
{
	s->full = sd_event_source_disable_unref(s->full);
	tracee_release_old(s->tracee);
	return sd_event_add_io(s->set->event, &s->full, probe_ring_fd(s->tracee->probe),
			       EPOLLIN | EPOLLET, on_full, s);
}

/* Handles what a drain found besides events. To be called after each drain of a ring. */
static void session_after_drain(struct session *s)
{
	follow_take_news(s);
	if (s->tracee->old_probe)
		session_watch_ring(s);
	if (s->tracee->state == SESSION_ENDED && !s->over)
		session_over(s);
}

void sessions_after_drain(struct sessions *ss)
{
	for (size_t i = 0; i < ss->n; i++)
		session_after_drain(ss->v[i]);
}

/* What it has forked last is followed first: the children keep the probes that it loses. */
static int on_pidfd(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct session *s = ctx;

	(void)source, (void)fd, (void)revents;
	s->end = sd_event_source_disable_unref(s->end);
	tracee_drain(s->tracee, tracee_now() + END_NS);
	follow_take_news(s);
	follow_now(s);
	tracee_end(s->tracee, "exited");
	session_after_drain(s);
	sessions_arm(s->set, 0);
	return 0;
}

static bool is_on(const struct session *s)
{
	return tracee_is_on(s->tracee) || tracee_settles(s->tracee);
}

/* Drain one target for a slice of time; true if something is left. */
static bool session_slice(struct session *s, bool *busy)
{
	struct tracee *t = s->tracee;
	uint64_t until = tracee_now() + SLICE_NS;
	bool more;

	if (t->state == SESSION_STOPPING) {
		/* While its probes are being detached there is nothing to do. */
		more = !tracee_finish(t, until) && tracee_pending(t);
		*busy = true;
	} else {
		*busy |= tracee_drain(t, until) > 0;
		more = tracee_now() >= until && tracee_pending(t);
	}
	session_after_drain(s);
	return more;
}

/* What is to be done now and then besides draining. */
static void session_turn(struct session *s)
{
	struct tracee *t = s->tracee;
	uint64_t now = tracee_now();

	if (t->state == SESSION_TRACING) {
		tracee_turn(t);
		probe_jitter(t->probe, now);
	}
	tracee_settle(t);
	if (now - t->rate_ns >= RATE_NS)
		tracee_sample_rate(t, now);
}

/* More than half full: at once, but no target comes before the others. */
static int on_full(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct session *s = ctx;

	(void)source, (void)fd, (void)revents;
	sessions_arm(s->set, 0);
	return 0;
}

static bool sessions_tracing(const struct sessions *ss)
{
	for (size_t i = 0; i < ss->n; i++)
		if (is_on(ss->v[i]))
			return true;
	return false;
}

/* The timer runs only while something is traced: an idle daemon does not wake up. */
int sessions_arm(struct sessions *ss, uint64_t delay_us)
{
	int r;

	if (!sessions_tracing(ss))
		return sd_event_source_set_enabled(ss->timer, SD_EVENT_OFF);
	for (size_t i = 0; i < ss->n; i++) {
		const struct tracee *t = ss->v[i]->tracee;
		uint64_t due = t->state == SESSION_TRACING ? tracee_due_us(t) : delay_us;

		delay_us = due < delay_us ? due : delay_us;
	}
	r = sd_event_source_set_time_relative(ss->timer, delay_us);
	return r < 0 ? r : sd_event_source_set_enabled(ss->timer, SD_EVENT_ONESHOT);
}

/* Each target that has something gets a slice, the one after the last turn's last one first; true if
 * the turn was over before all had theirs, or something is left. */
static bool sessions_round(struct sessions *ss, uint64_t until, bool first, bool *busy)
{
	bool more = false;

	for (size_t k = 0, n = ss->n; k < n; k++) {
		struct session *s = ss->v[ss->next++ % n];

		if (!is_on(s))
			continue;
		more |= session_slice(s, busy);
		if (first)
			session_turn(s);
		if (tracee_now() >= until)
			return more || k + 1 < n;
	}
	return more;
}

/* Drain all in turn; true if something is left. */
static bool sessions_turn(struct sessions *ss, bool *busy)
{
	uint64_t until = tracee_now() + TURN_NS;
	bool more = sessions_round(ss, until, true, busy);

	while (more && tracee_now() < until)
		more = sessions_round(ss, until, false, busy);
	return more;
}

struct tracee *sessions_tracee(const struct sessions *ss, size_t i)
{
	return i < ss->n ? ss->v[i]->tracee : NULL;
}

void sessions_read_rings(struct sessions *ss)
{
	bool busy = false;

	sessions_turn(ss, &busy);
}

/* How long nothing needs to be done. */
static uint64_t sessions_pause(const struct sessions *ss, bool busy)
{
	uint64_t pause = DRAIN_LIGHT_US;

	for (size_t i = 0; i < ss->n; i++) {
		const struct tracee *t = ss->v[i]->tracee;

		if (t->state == SESSION_STOPPING || tracee_settles(t) ||
		    (busy && is_on(ss->v[i]) && t->collector->stacks))
			return DRAIN_BUSY_US;
		if (t->opts.light)
			continue;
		pause = pause < DRAIN_REST_US ? pause : DRAIN_REST_US;
		if (is_on(ss->v[i]) && (t->collector->stacks || probe_is_sampling(t->probe)))
			pause = DRAIN_IDLE_US;
	}
	return pause;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct sessions *ss = ctx;
	bool busy = false, more;

	(void)source, (void)usec;
	more = sessions_turn(ss, &busy);
	timelines_check(ss);
	recorders_forget(ss, &ss->timelines);
	recorders_forget(ss, &ss->slows);
	follow_retry(ss);
	return sessions_arm(ss, more ? 0 : sessions_pause(ss, busy));
}

/* A thread has loaded a probe, for one of the targets that are being attached or for a child. */
static int on_loaded(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct sessions *ss = ctx;

	(void)source, (void)fd, (void)revents;
	looking_loaded(ss);
	follow_loaded(ss);
	return 0;
}

static int watch_loads(struct sessions *ss)
{
	_cleanup_close_ int fd = probe_ready_fd();
	int r = fd < 0 ? fd
		       : sd_event_add_io(ss->event, &ss->loaded, fd, EPOLLIN | EPOLLET, on_loaded,
					 ss);

	if (r == 0)
		r = sd_event_source_set_io_fd_own(ss->loaded, true);
	if (r == 0)
		(void)TAKE_FD(fd);
	return r;
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
	ss->timelines.kind = &timelines_kind;
	ss->slows.kind = &slows_kind;
	r = sd_event_add_time_relative(event, &ss->timer, CLOCK_MONOTONIC, DRAIN_IDLE_US, 1,
				       on_timer, ss);
	if (r < 0)
		return diag_errno(diag, -r, "cannot set a timer");
	sd_event_source_set_enabled(ss->timer, SD_EVENT_OFF);
	r = follow_init(ss);
	if (r == 0)
		r = watch_loads(ss);
	if (r < 0)
		return diag_errno(diag, -r, "cannot set up the event loop");
	probe_prepare();
	sample_cost_begin();
	*ret = TAKE_PTR(ss);
	return 0;
}

void sessions_free(struct sessions *ss)
{
	if (!ss)
		return;
	follow_deinit(ss); /* first: a target that leaves hands its tasks over to another one */
	for (size_t i = 0; i < ss->n; i++)
		session_free(ss->v[i]);
	ss->n = 0;
	recorders_close_all(ss, &ss->timelines);
	recorders_close_all(ss, &ss->slows);
	looking_deinit(ss);
	sd_event_source_disable_unref(ss->loaded);
	sd_event_source_disable_unref(ss->timer);
	free(ss->v);
	free(ss);
}

struct session *sessions_find(const struct sessions *ss, pid_t pid)
{
	for (size_t i = 0; i < ss->n; i++)
		if (ss->v[i]->tracee->target->pid == pid)
			return ss->v[i];
	return NULL;
}

int sessions_not_attached(pid_t pid, struct diag *diag)
{
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS,
			"`pyprofctl status` lists the targets, `pyprofctl attach PID` adds one",
			"process %d is not attached", pid);
}

void sessions_remove(struct sessions *ss, struct session *s)
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

static int session_watch(struct session *s, struct diag *diag)
{
	struct sd_event *event = s->set->event;
	int r;

	r = sd_event_add_io(event, &s->end, s->tracee->target->pidfd, EPOLLIN, on_pidfd, s);
	if (r == 0)
		r = session_watch_ring(s);
	return r < 0 ? diag_errno(diag, -r, "cannot watch process %d", s->tracee->target->pid) : 0;
}

int session_new(struct sessions *ss, struct tracee *t, struct session **ret, struct diag *diag)
{
	_cleanup_(session_freep) struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		tracee_free(t);
		return diag_errno(diag, ENOMEM, "cannot attach");
	}
	s->set = ss;
	s->tracee = t;
	r = session_watch(s, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

static void set_skip(const struct sessions *ss, const struct tracee *t)
{
	if (t->opts.light && t->probe)
		probe_set_skip(t->probe, ss->skip);
}

void sessions_set_skip(struct sessions *ss, uint32_t one_in)
{
	ss->skip = one_in;
	for (size_t i = 0; i < ss->n; i++)
		set_skip(ss, ss->v[i]->tracee);
}

int sessions_add(struct sessions *ss, struct session *s)
{
	struct session **v = realloc(ss->v, (ss->n + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	ss->v = v;
	ss->v[ss->n++] = s;
	set_skip(ss, s->tracee);
	sessions_arm(ss, DRAIN_BUSY_US);
	return 0;
}

struct target_opts sessions_target_opts(const struct sessions *ss)
{
	return ss->opts.target;
}

/* The weights of windows need the costs from the first one on. They were measured while the target
 * was being attached. */
static int start_tracee(struct tracee *t, struct diag *diag)
{
	if (t->collector->windows)
		tracee_take_cost(t);
	return tracee_start(t, diag);
}

/* The data of a process that has ended is dropped by nobody but its user; a child's is folded. */
static int check_free(const struct sessions *ss, pid_t pid, struct diag *diag)
{
	const struct session *old = sessions_find(ss, pid);

	if (!old || (old->tracee->state == SESSION_ENDED && old->tracee->parent))
		return 0;
	if (old->tracee->state != SESSION_ENDED)
		return diag_set(diag, -EEXIST, PYP_EXIT_BUSY, "`pyprofctl start` resumes tracing",
				"process %d is attached already", pid);
	return diag_set(diag, -EEXIST, PYP_EXIT_BUSY,
			"save it (pyprofctl snapshot --pid PID -o FILE), then pyprofctl detach PID",
			"the data of a target with the pid %d that has ended (%s) is kept", pid,
			old->tracee->end_reason);
}

static int check_attach(const struct sessions *ss, pid_t pid, const struct target_opts *opts,
			struct diag *diag)
{
	int r = check_free(ss, pid, diag);

	return r < 0 ? r : target_opts_check(opts, diag);
}

static void find_windows(struct sessions *ss)
{
	enum probe_mechanism m;

	if (ss->windows == WINDOWS_UNKNOWN && probe_check(&m, NULL) == 0)
		ss->windows = m == PROBE_TRACEFS ? WINDOWS_IMPOSSIBLE : WINDOWS_POSSIBLE;
}

/*
 * A limit needs windows. Where the kernel cannot open and close them fast enough, the default is to
 * sample, so that it is safe there as well; a limit that was asked for is refused.
 */
static struct target_opts possible_opts(const struct sessions *ss, const struct target_opts *opts)
{
	struct target_opts o = *opts;

	if (ss->windows == WINDOWS_IMPOSSIBLE && target_opts_limit(&o) && !o.asked)
		o.mode.mode = MODE_SAMPLE;
	return o;
}

static int look(struct sessions *ss, struct looking_of of, struct diag *diag)
{
	struct target_opts opts;
	int r = check_attach(ss, of.pid, of.opts, diag);

	if (r < 0)
		return r;
	find_windows(ss);
	opts = possible_opts(ss, of.opts);
	of.opts = &opts;
	return looking_begin(ss, &of, diag);
}

int sessions_look(struct sessions *ss, pid_t pid, const struct target_opts *opts, uint64_t since_ns,
		  struct diag *diag)
{
	return look(ss, (struct looking_of){.pid = pid, .opts = opts, .since_ns = since_ns}, diag);
}

int sessions_look_stopped(struct sessions *ss, pid_t pid, uint64_t since_ns, struct diag *diag)
{
	return look(ss,
		    (struct looking_of){.pid = pid,
					.opts = &ss->opts.target,
					.since_ns = since_ns,
					.stopped = true},
		    diag);
}

struct session_forecast sessions_forecast(const struct sessions *ss, pid_t pid,
					  const struct target_opts *opts)
{
	const struct target_opts possible = possible_opts(ss, opts);
	const struct tracee *t = looking_seen(ss, pid);
	struct session_forecast ret = {0};
	const char *slash;

	if (!t)
		return ret;
	slash = strrchr(t->target->exe, '/');
	snprintf(ret.name, sizeof(ret.name), "%.63s", slash ? slash + 1 : t->target->exe);
	ret.forecast = t->forecast;
	ret.cost = forecast_cost(&t->forecast, &possible);
	ret.limit = target_opts_limit(&possible);
	if (t->workers && !opts->follow)
		ret.workers = workers_use(t->workers);
	return ret;
}

/* Takes t, also when it fails. */
static int add_tracee(struct sessions *ss, struct tracee *t, bool start, struct diag *diag)
{
	_cleanup_(session_freep) struct session *s = NULL;
	pid_t pid = t->target->pid;
	int r = session_new(ss, t, &s, diag);

	if (r == 0 && t->opts.follow)
		r = follow_begin(s, diag);
	if (r == 0 && start)
		r = start_tracee(s->tracee, diag);
	if (r < 0)
		return r;
	if (follow_forget(ss, pid) < 0 || sessions_add(ss, s) < 0)
		return diag_errno(diag, ENOMEM, "cannot attach to %d", pid);
	follow_look(TAKE_PTR(s));
	return 0;
}

int sessions_attach(struct sessions *ss, pid_t pid, bool start, const struct target_opts *opts,
		    struct diag *diag)
{
	_cleanup_(tracee_freep) struct tracee *t = NULL;
	struct target_opts possible;
	int r;

	if (!opts)
		opts = &ss->opts.target;
	r = check_attach(ss, pid, opts, diag);
	if (r < 0)
		return r;
	possible = possible_opts(ss, opts);
	t = looking_take(ss, pid, &possible);
	if (!t)
		return diag_set(diag, -EBUSY, PYP_EXIT_FAILURE, "try again",
				"attaching to %d could not be completed", pid);
	r = tracee_open(t, diag);
	return r < 0 ? r : add_tracee(ss, TAKE_PTR(t), start, diag);
}

int sessions_detach(struct sessions *ss, pid_t pid, struct diag *diag)
{
	struct session *s = sessions_find(ss, pid);

	if (!s)
		return looking_cancel(ss, pid) ? 0 : sessions_not_attached(pid, diag);
	follow_detach(ss, s);
	return 0;
}

/* Does a command for the target `one` (NULL: for all) concern this target? */
static bool concerns(const struct session *s, const struct session *one)
{
	return !one || follow_stems_from(s, one);
}

static int all_ended(const struct session *one, struct diag *diag)
{
	if (one)
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "detach it, or attach another",
				"process %d has ended", one->tracee->target->pid);
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "`pyprofctl attach PID` adds one",
			"nothing to start: every target has ended");
}

int sessions_start_each(struct sessions *ss, pid_t pid, sessions_failed_fn failed, void *ctx,
			struct diag *diag)
{
	const struct session *one = pid ? sessions_find(ss, pid) : NULL;
	size_t alive = 0;
	int first = 0;

	if (pid && !one)
		return sessions_not_attached(pid, diag);
	for (size_t i = 0; i < ss->n; i++) {
		struct session *s = ss->v[i];
		struct diag why = {0};
		int r;

		if (!concerns(s, one) || s->tracee->state == SESSION_ENDED)
			continue;
		alive++;
		r = start_tracee(s->tracee, &why);
		if (r == 0) {
			follow_look(s);
			continue;
		}
		/* A child that has ended a moment ago is no failure: its end is handled soon. */
		if (r == -ESRCH && s != one && s->tracee->parent)
			continue;
		if (failed)
			failed(ctx, s->tracee->target->pid, r, &why);
		if (!first)
			first = diag_set(diag, r, why.exit, why.hint, "%s", why.msg);
	}
	sessions_after_drain(ss);
	sessions_arm(ss, DRAIN_BUSY_US);
	return !alive && ss->n ? all_ended(one, diag) : first;
}

int sessions_stop(struct sessions *ss, pid_t pid, struct diag *diag)
{
	const struct session *one = pid ? sessions_find(ss, pid) : NULL;
	uint64_t until;

	if (pid && !one)
		return sessions_not_attached(pid, diag);
	for (size_t i = 0; i < ss->n; i++)
		if (concerns(ss->v[i], one))
			tracee_stop(ss->v[i]->tracee);
	until = tracee_now() + STOP_NS;
	for (size_t i = 0; i < ss->n && tracee_now() < until; i++)
		if (tracee_pending(ss->v[i]->tracee) < STOP_BYTES)
			tracee_finish(ss->v[i]->tracee, until);
	sessions_after_drain(ss);
	follow_stopped(ss);
	sessions_arm(ss, 0);
	return 0;
}

int sessions_clear(struct sessions *ss, pid_t pid, struct diag *diag)
{
	if (pid && !sessions_find(ss, pid))
		return sessions_not_attached(pid, diag);
	if (!pid)
		follow_clear(ss);
	for (size_t i = 0; i < ss->n; i++)
		if (!pid || ss->v[i]->tracee->target->pid == pid)
			tracee_clear(ss->v[i]->tracee);
	sessions_after_drain(ss);
	return 0;
}
