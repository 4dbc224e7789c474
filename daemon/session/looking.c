// SPDX-License-Identifier: BSD-2-Clause
/*
 * Targets that are being attached: a process looks into each of them (inspect/inspect.h), which may
 * take until its deadline. One that is to be traced is then sampled for a moment, and its calls are
 * counted for another one, which tells what tracing will cost it. Clients and other targets are served
 * meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "session/set.h"

/* Each has two processes. */
#define LOOKING_MAX 32u

/* What is not fetched by then has lost its client. */
#define KEEP_NS 2000000000ull

enum looking_step { LOOKING_PLANNING, LOOKING_SAMPLING, LOOKING_FORECASTING };
static const char *const step_names[] = {"planning", "sampling", "forecasting"};

struct looking {
	struct sessions *set;
	pid_t pid;
	struct tracee *tracee; /* NULL: cancelled */
	struct sd_event_source *io, *timer;
	uint64_t done_ns; /* or cancelled; 0: not yet */
	enum looking_step step;
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

static void done(struct looking *l)
{
	l->done_ns = tracee_now();
	l->io = sd_event_source_disable_unref(l->io);
	l->timer = sd_event_source_disable_unref(l->timer);
	if (l->set->on_looked)
		l->set->on_looked(l->set->on_looked_ctx);
}

/* Until then it is observed. */
static bool observe(struct looking *l, enum looking_step step, uint64_t until_ns)
{
	l->step = step;
	l->until_ns = until_ns;
	return sd_event_source_set_time(l->timer, l->until_ns / 1000 + 1) >= 0 &&
	       sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT) >= 0;
}

static void prepare(struct looking *l)
{
	l->io = sd_event_source_disable_unref(l->io);
	tracee_prepare(l->tracee, sessions_drain, l->set);
}

/* What a step has found out, and the next one. */
static bool go_on(struct looking *l)
{
	uint64_t begin = tracee_now();
	bool sampled = false;

	if (l->step == LOOKING_PLANNING) {
		prepare(l);
		sampled = tracee_refer(l->tracee) == 0;
		begin = tracee_now();
		/* Loading it takes as long as sampling. */
		(void)tracee_survey(l->tracee);
	}
	if (sampled)
		return observe(l, LOOKING_SAMPLING, begin + REFERENCE_NS);
	tracee_refer_end(l->tracee);
	return tracee_survey_next(l->tracee) > 0 &&
	       observe(l, LOOKING_FORECASTING, tracee_now() + SURVEY_NS);
}

static void check(struct looking *l)
{
	if (l->done_ns || !tracee_looked(l->tracee))
		return;
	if (l->step != LOOKING_PLANNING && tracee_now() < l->until_ns)
		return;
	if (!go_on(l))
		done(l);
}

static int on_answer(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	(void)source, (void)fd, (void)revents;
	check(ctx);
	return 0;
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
	int r;

	r = sd_event_add_io(l->set->event, &l->io, inspect_fd(in), EPOLLIN, on_answer, l);
	if (r >= 0)
		r = sd_event_add_time(l->set->event, &l->timer, CLOCK_MONOTONIC,
				      inspect_deadline(in) / 1000 + 1, 1000, on_deadline, l);
	return r < 0 ? r : 0;
}

static int begin(struct sessions *ss, pid_t pid, const struct target_opts *opts, struct diag *diag)
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
		return diag_errno(diag, ENOMEM, "cannot attach to %d", pid);
	l->set = ss;
	l->pid = pid;
	r = tracee_look(pid, opts, &l->tracee, diag);
	if (r < 0)
		return r;
	r = watch(l);
	if (r < 0)
		return diag_errno(diag, -r, "cannot watch a helper process");
	v[ss->nlooking++] = TAKE_PTR(l);
	return -EINPROGRESS;
}

int looking_begin(struct sessions *ss, pid_t pid, const struct target_opts *opts, uint64_t since_ns,
		  struct diag *diag)
{
	struct looking *l;

	forget_old(ss);
	l = find(ss, pid);
	if (l && !l->tracee) {
		if (since_ns && since_ns <= l->done_ns)
			return diag_set(diag, -ECANCELED, PYP_EXIT_NO_PROCESS, "",
					"attaching to %d was cancelled", pid);
		forget(ss, l);
		l = NULL;
	}
	if (!l)
		return begin(ss, pid, opts, diag);
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
	/* Another client may have asked for it, with other options. */
	if (l->tracee && l->tracee->opts.mode.mode == opts->mode.mode) {
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

void sessions_on_looked(struct sessions *ss, void (*fn)(void *ctx), void *ctx)
{
	ss->on_looked = fn;
	ss->on_looked_ctx = ctx;
}
