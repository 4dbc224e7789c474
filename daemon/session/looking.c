// SPDX-License-Identifier: BSD-2-Clause
/*
 * Targets that are being attached, each in steps: a helper process inspects it and plans the
 * probes, another one runs the self-test. Meanwhile a thread loads the BPF programs. Then the
 * target is sampled for a moment, and its calls are counted for another one, which gives the
 * forecast. Every step only waits for descriptors and timers in the event loop, so clients and
 * other targets are served meanwhile, and it can be cancelled in every step.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "session/set.h"

/* Each has up to eight processes: two inspect it, and six of its self-test. */
#define LOOKING_MAX 32u

/* What is not fetched by then has lost its client. */
#define KEEP_NS 2000000000ull

enum looking_step {
	LOOKING_PLANNING,
	LOOKING_VERIFYING,
	LOOKING_LOADING_OBSERVERS,
	LOOKING_SAMPLING,
	LOOKING_FORECASTING,
	LOOKING_LOADING,
	LOOKING_PACING,
};
static const char *const step_names[] = {"planning",	"verifying", "loading", "sampling",
					 "forecasting", "loading",   "pacing"};

struct looking {
	struct sessions *set;
	pid_t pid;
	struct tracee *tracee; /* NULL: cancelled */
	struct sd_event_source *io, *timer;
	uint64_t done_ns; /* or cancelled; 0: not yet */
	enum looking_step step;
	bool stopped;	   /* the process does not run, so observing it is useless */
	uint64_t until_ns; /* it is observed until then, where it is */
};

static void looking_free(struct looking *l)
{
	if (!l)
		return;
	sd_event_source_disable_unref(l->io);
	sd_event_source_disable_unref(l->timer);
	tracee_free(l->tracee);
	free(l);
}
DEFINE_FREEP(struct looking, looking_free)

static int on_answer(sd_event_source *source, int fd, uint32_t revents, void *ctx);

/* Call the listeners, which may not free it before the event loop runs again. */
static void done(struct looking *l)
{
	l->done_ns = tracee_now();
	l->io = sd_event_source_disable_unref(l->io);
	l->timer = sd_event_source_disable_unref(l->timer);
	for (struct sessions_listener *s = l->set->listeners; s; s = s->next)
		s->looked(s->ctx);
}

static bool set_timer(struct looking *l, uint64_t at_ns)
{
	return sd_event_source_set_time(l->timer, at_ns / 1000 + 1) >= 0 &&
	       sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT) >= 0;
}

/* Until then it is observed. */
static bool observe(struct looking *l, enum looking_step step, uint64_t until_ns)
{
	l->step = step;
	l->until_ns = until_ns;
	return set_timer(l, until_ns);
}

/* Go on when a helper has answered, or at its deadline. */
static bool await(struct looking *l, int fd, uint64_t deadline_ns)
{
	return sd_event_add_io(l->set->event, &l->io, fd, EPOLLIN, on_answer, l) >= 0 &&
	       set_timer(l, deadline_ns);
}

static bool await_verdict(struct looking *l)
{
	return await(l, tracee_verify_fd(l->tracee), tracee_verify_deadline(l->tracee));
}

/* Sample until the next change of the period, or the end. */
static bool sample_on(struct looking *l)
{
	uint64_t now = tracee_now(), next = now + REFERENCE_TURN_NS;

	tracee_refer_turn(l->tracee, now);
	return set_timer(l, next < l->until_ns ? next : l->until_ns);
}

static bool pace_on(struct looking *l)
{
	uint64_t next_ns = pace_turn(&l->tracee->pace);

	return next_ns && observe(l, LOOKING_PACING, tracee_now() + next_ns);
}

/* The last step, for which its own programs are loaded. False: there is none. */
static bool begin_pacing(struct looking *l)
{
	return !l->stopped && tracee_pace_begin(l->tracee) && pace_on(l);
}

/* The step before. False: nothing is to be waited for. */
static bool await_programs(struct looking *l)
{
	l->step = LOOKING_LOADING;
	return !tracee_is_loaded(l->tracee) || begin_pacing(l);
}

/* Count its calls, or go on to do so. */
static bool survey(struct looking *l)
{
	return (tracee_survey_next(l->tracee) > 0 &&
		observe(l, LOOKING_FORECASTING, tracee_now() + SURVEY_NS)) ||
	       await_programs(l);
}

static bool begin_observing(struct looking *l)
{
	if (l->stopped)
		return await_programs(l);
	if (tracee_refer(l->tracee) < 0)
		return survey(l);
	l->step = LOOKING_SAMPLING;
	l->until_ns = tracee_now() + REFERENCE_NS;
	return sample_on(l);
}

/* What a step has found out, and the next one. False: there is nothing to wait for. */
static bool go_on(struct looking *l)
{
	/* before its descriptor is closed, and the number used again */
	l->io = sd_event_source_disable_unref(l->io);
	switch (l->step) {
	case LOOKING_PLANNING:
		tracee_prepare(l->tracee);
		tracee_load_begin(l->tracee, !l->stopped);
		l->step = LOOKING_VERIFYING;
		/* fall through */
	case LOOKING_VERIFYING:
		if (!tracee_verified(l->tracee))
			return await_verdict(l);
		tracee_calibrate(l->tracee);
		l->step = LOOKING_LOADING_OBSERVERS;
		/* fall through */
	case LOOKING_LOADING_OBSERVERS:
		return !tracee_observers_are_loaded(l->tracee) || begin_observing(l);
	case LOOKING_SAMPLING:
	case LOOKING_FORECASTING:
		tracee_refer_end(l->tracee);
		return survey(l);
	case LOOKING_LOADING:
		return begin_pacing(l);
	case LOOKING_PACING:
		return pace_on(l);
	}
	return false;
}

/* Is what the present step waits for not there yet? */
static bool is_waiting(struct looking *l)
{
	switch (l->step) {
	case LOOKING_PLANNING:
		return !tracee_looked(l->tracee);
	case LOOKING_LOADING_OBSERVERS:
		return !tracee_observers_are_loaded(l->tracee);
	case LOOKING_SAMPLING:
	case LOOKING_PACING:
		return tracee_now() < l->until_ns;
	case LOOKING_FORECASTING:
		return tracee_now() < l->until_ns || !tracee_observers_are_loaded(l->tracee);
	case LOOKING_LOADING:
		return !tracee_is_loaded(l->tracee);
	case LOOKING_VERIFYING:
		break;
	}
	return false;
}

/* False: the timer cannot be set, so it would wait forever. */
static bool wait_on(struct looking *l)
{
	const struct inspect *in = l->tracee->inspect;

	/* An inspector that was killed is replaced by one with another descriptor. */
	if (l->step == LOOKING_PLANNING &&
	    (!l->io || sd_event_source_get_io_fd(l->io) != inspect_fd(in))) {
		l->io = sd_event_source_disable_unref(l->io);
		return await(l, inspect_fd(in), inspect_deadline(in));
	}
	return l->step != LOOKING_SAMPLING || sample_on(l);
}

static void check(struct looking *l)
{
	if (!l->done_ns && !(is_waiting(l) ? wait_on(l) : go_on(l)))
		done(l);
}

static int on_answer(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	(void)source, (void)fd, (void)revents;
	check(ctx);
	return 0;
}

void looking_loaded(struct sessions *ss)
{
	for (size_t i = 0; i < ss->nlooking; i++)
		if (ss->looking[i]->step >= LOOKING_LOADING_OBSERVERS)
			check(ss->looking[i]);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *ctx)
{
	(void)source, (void)usec;
	check(ctx);
	return 0;
}

static struct looking *find(const struct sessions *ss, pid_t pid)
{
	for (size_t i = 0; i < ss->nlooking; i++)
		if (ss->looking[i]->pid == pid)
			return ss->looking[i];
	return NULL;
}

static void forget(struct sessions *ss, struct looking *l)
{
	size_t i = 0;

	while (ss->looking[i] != l)
		i++;
	ss->nlooking--;
	memmove(&ss->looking[i], &ss->looking[i + 1], (ss->nlooking - i) * sizeof(*ss->looking));
	looking_free(l);
}

static void forget_old(struct sessions *ss)
{
	uint64_t now = tracee_now();

	for (size_t i = ss->nlooking; i-- > 0;) {
		struct looking *l = ss->looking[i];

		if (l->done_ns && now >= l->done_ns + KEEP_NS)
			forget(ss, l);
	}
}

static int watch(struct looking *l)
{
	const struct inspect *in = l->tracee->inspect;
	int r = sd_event_add_time(l->set->event, &l->timer, CLOCK_MONOTONIC, 0, 1000, on_deadline,
				  l);

	if (r < 0)
		return r;
	return await(l, inspect_fd(in), inspect_deadline(in)) ? 0 : -ENOMEM;
}

static int begin(struct sessions *ss, const struct looking_of *of, struct diag *diag)
{
	_cleanup_(looking_freep) struct looking *l = NULL;
	struct looking **v;
	int r;

	if (ss->nlooking == LOOKING_MAX)
		return diag_set(diag, -EBUSY, PYP_EXIT_BUSY, "try again",
				"%u processes are being attached to at this moment", LOOKING_MAX);
	l = calloc(1, sizeof(*l));
	v = reallocarray(ss->looking, ss->nlooking + 1, sizeof(*v));
	if (v)
		ss->looking = v;
	if (!l || !v)
		return diag_errno(diag, ENOMEM, "cannot attach to %d", of->pid);
	l->set = ss;
	l->pid = of->pid;
	l->stopped = of->stopped;
	r = tracee_look(of->pid, of->opts, &l->tracee, diag);
	if (r < 0)
		return r;
	r = watch(l);
	if (r < 0)
		return diag_errno(diag, -r, "cannot watch a helper process");
	v[ss->nlooking++] = TAKE_PTR(l);
	return -EINPROGRESS;
}

/* Another client may have asked for it with other options: is what was found out, and proven, what
 * these options need as well? */
static bool fits(const struct tracee *t, const struct target_opts *opts)
{
	return t->opts.mode.mode == opts->mode.mode && t->opts.verify == opts->verify &&
	       t->opts.builtins == opts->builtins && t->opts.light == opts->light &&
	       t->collector == collector_of(opts);
}

int looking_begin(struct sessions *ss, const struct looking_of *of, struct diag *diag)
{
	struct looking *l;

	forget_old(ss);
	l = find(ss, of->pid);
	if (l && !l->tracee && of->since_ns && of->since_ns <= l->done_ns)
		return diag_set(diag, -ECANCELED, PYP_EXIT_NO_PROCESS, "",
				"attaching to %d was cancelled", of->pid);
	if (l && l->done_ns && (!l->tracee || !fits(l->tracee, of->opts))) {
		forget(ss, l);
		l = NULL;
	}
	if (!l)
		return begin(ss, of, diag);
	return l->done_ns ? 0 : -EINPROGRESS;
}

const struct tracee *looking_seen(const struct sessions *ss, pid_t pid)
{
	const struct looking *l = find(ss, pid);

	return l && l->done_ns ? l->tracee : NULL;
}

struct tracee *looking_take(struct sessions *ss, pid_t pid, const struct target_opts *opts)
{
	struct looking *l = find(ss, pid);
	struct tracee *t = NULL;

	if (!l || !l->done_ns)
		return NULL;
	if (l->tracee && fits(l->tracee, opts)) {
		t = TAKE_PTR(l->tracee);
		tracee_set_opts(t, opts);
	}
	forget(ss, l);
	return t;
}

/* Freeing the target ends the processes that look into it. The entry stays: it is the answer to the
 * requests that wait. */
static bool cancel(struct looking *l)
{
	if (l->done_ns)
		return false;
	done(l);
	tracee_free(TAKE_PTR(l->tracee));
	return true;
}

bool looking_cancel(struct sessions *ss, pid_t pid)
{
	struct looking *l = find(ss, pid);

	return l && cancel(l);
}

void sessions_cancel_attaching(struct sessions *ss)
{
	for (size_t i = 0; i < ss->nlooking; i++)
		cancel(ss->looking[i]);
}

bool sessions_attaching(const struct sessions *ss, size_t i, struct session_attaching *ret)
{
	for (size_t k = 0; k < ss->nlooking; k++) {
		if (ss->looking[k]->done_ns || i--)
			continue;
		*ret = (struct session_attaching){
			.pid = ss->looking[k]->pid,
			.step = step_names[ss->looking[k]->step],
		};
		return true;
	}
	return false;
}

bool sessions_looked(const struct sessions *ss, pid_t pid)
{
	const struct looking *l = find(ss, pid);

	return !l || l->done_ns;
}

void looking_deinit(struct sessions *ss)
{
	while (ss->nlooking)
		looking_free(ss->looking[--ss->nlooking]);
	free(ss->looking);
}

void sessions_listen(struct sessions *ss, struct sessions_listener *l)
{
	l->next = ss->listeners;
	ss->listeners = l;
}

void sessions_unlisten(struct sessions *ss, struct sessions_listener *l)
{
	struct sessions_listener **at = &ss->listeners;

	while (*at && *at != l)
		at = &(*at)->next;
	if (*at)
		*at = l->next;
}
