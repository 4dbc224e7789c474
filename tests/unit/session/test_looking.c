// SPDX-License-Identifier: BSD-2-Clause
/*
 * session/looking: the steps of attaching, several targets that are attached at a time, and
 * cancellation in each step. The life of a target is replaced by functions of the test, which are
 * linked instead of the archive's.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>

#include "harness/test.h"
#include "session/set.h"

static uint64_t now_ns;
static unsigned int alive, begun, reported;
static int fds[8];
static struct sessions set;
static const struct target_opts opts;

/* ---- a target: its pidfd is an eventfd that is readable when the inspection has ended -------- */

uint64_t tracee_now(void)
{
	return now_ns;
}

int tracee_look(pid_t pid, const struct target_opts *o, struct tracee **ret, struct diag *diag)
{
	struct tracee *t = calloc(1, sizeof(*t));

	(void)diag;
	t->target = calloc(1, sizeof(*t->target));
	t->target->pid = pid;
	t->target->pidfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->opts = *o;
	t->collector = collector_of(o);
	t->inspect = (struct inspect *)(void *)t;
	alive++;
	fds[begun++] = t->target->pidfd;
	*ret = t;
	return 0;
}

void tracee_free(struct tracee *t)
{
	if (!t)
		return;
	close(t->target->pidfd);
	free(t->target);
	free(t);
	alive--;
}

bool tracee_looked(struct tracee *t)
{
	uint64_t n;

	if (read(t->target->pidfd, &n, sizeof(n)) == sizeof(n))
		t->lost_hold = true; /* stands for: it has ended */
	return t->lost_hold;
}

static bool samples, counts, verifies;
static unsigned int turns; /* changes of the time between two samples */
static unsigned int prepared, moments, calibrations;
/* Descriptors that are readable when a self-test has ended: of pids 11 and 12 */
static int verdicts[2];

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

void tracee_prepare(struct tracee *t)
{
	(void)t;
	prepared++;
}

int tracee_verify_fd(const struct tracee *t)
{
	return verdicts[t->target->pid - 11];
}

bool tracee_verified(struct tracee *t)
{
	return !verifies || is_readable(tracee_verify_fd(t));
}

uint64_t tracee_verify_deadline(const struct tracee *t)
{
	(void)t;
	return UINT64_MAX / 2;
}

void tracee_calibrate(struct tracee *t)
{
	(void)t;
	calibrations++;
}

const struct collector *collector_of(const struct target_opts *o)
{
	static const struct collector plain, windowed;

	return o->max_overhead ? &windowed : &plain;
}

int tracee_refer(struct tracee *t)
{
	(void)t;
	return samples ? 0 : -EOPNOTSUPP;
}

void tracee_refer_turn(struct tracee *t, uint64_t ns)
{
	(void)t;
	cr_assert_eq(ns, now_ns);
	turns++;
}

void tracee_refer_end(struct tracee *t)
{
	(void)t;
}

/* The programs of a target that is observed are loaded when this is false; those of the target. */
static bool observers_load, target_loads;
static unsigned int loads, observed;

void tracee_load_begin(struct tracee *t, bool observe)
{
	(void)t;
	loads++;
	observed += observe;
}

bool tracee_observers_are_loaded(const struct tracee *t)
{
	(void)t;
	return !observers_load;
}

bool tracee_is_loaded(const struct tracee *t)
{
	(void)t;
	return !target_loads;
}

/* Two moments. */
int tracee_survey_next(struct tracee *t)
{
	(void)t;
	return counts ? moments++ % 3 < 2 : -EOPNOTSUPP;
}

static bool has_pace;
static unsigned int paces;

bool tracee_pace_begin(struct tracee *t)
{
	(void)t;
	return has_pace;
}

/* Three turns, one a millisecond. */
uint64_t pace_turn(struct pace *p)
{
	(void)p;
	return paces++ % 3 < 2 ? 1000000 : 0;
}

void tracee_set_opts(struct tracee *t, const struct target_opts *o)
{
	t->opts = *o;
}

int inspect_fd(const struct inspect *in)
{
	return ((const struct tracee *)(const void *)in)->target->pidfd;
}

uint64_t inspect_deadline(const struct inspect *in)
{
	(void)in;
	return UINT64_MAX / 2;
}

/* ---- the set ------------------------------------------------------------------------------- */

static void on_looked(void *ctx)
{
	++*(unsigned int *)ctx;
}

static struct sessions_listener listener = {.looked = on_looked, .ctx = &reported};

static void setup(void)
{
	now_ns = 1000;
	assert_ok(sd_event_new(&set.event));
	sessions_listen(&set, &listener);
	for (int i = 0; i < 2; i++) {
		verdicts[i] = eventfd(0, EFD_CLOEXEC);
		cr_assert(verdicts[i] >= 0);
	}
}

static void teardown(void)
{
	looking_deinit(&set);
	sd_event_unref(set.event);
	for (int i = 0; i < 2; i++) {
		close(verdicts[i]);
	}
	cr_assert(alive == 0, "%u targets are left", alive);
	check_no_leaks();
}

TestSuite(looking, .init = setup);

static int begin_with(const struct looking_of *of)
{
	struct diag diag = {0};

	return looking_begin(&set, of, &diag);
}

static int begin(pid_t pid, uint64_t since_ns)
{
	return begin_with(&(struct looking_of){.pid = pid, .opts = &opts, .since_ns = since_ns});
}

static void signal_fd(int fd)
{
	const uint64_t one = 1;

	cr_assert(write(fd, &one, sizeof(one)) == sizeof(one));
}

/* The inspection that was begun as the i-th has ended. */
static void end_inspection(size_t i)
{
	signal_fd(fds[i]);
	cr_assert(sd_event_run(set.event, 0) >= 0);
}

static bool is_at(size_t i, pid_t pid, const char *step)
{
	struct session_attaching a;

	return sessions_attaching(&set, i, &a) && a.pid == pid && strcmp(a.step, step) == 0;
}

static bool attaches(size_t i, pid_t pid)
{
	return is_at(i, pid, "planning");
}

static bool nothing_is_attached(void)
{
	return !sessions_attaching(&set, 0, &(struct session_attaching){0});
}

/* Each ends by itself, in any order. */
Test(looking, several_at_a_time)
{
	struct tracee *t;

	cr_assert(begin(11, 1) == -EINPROGRESS && begin(12, 1) == -EINPROGRESS);
	cr_assert(begin(11, 2) == -EINPROGRESS && alive == 2, "it is begun once");
	cr_assert(attaches(0, 11) && attaches(1, 12) && !attaches(2, 12));
	end_inspection(1);
	cr_assert(reported == 1 && sessions_looked(&set, 12) && !sessions_looked(&set, 11));
	cr_assert(attaches(0, 11) && !attaches(1, 12));
	cr_assert(begin(12, 1) == 0 && begin(11, 1) == -EINPROGRESS);
	cr_assert(!looking_take(&set, 11, &opts));
	t = looking_take(&set, 12, &opts);
	cr_assert(t && t->target->pid == 12);
	tracee_free(t);
	end_inspection(0);
	cr_assert(reported == 2 && nothing_is_attached());
	teardown();
}

/* What is to be traced is sampled for a moment, which may be cancelled as well. */
Test(looking, is_sampled)
{
	samples = true;
	cr_assert(begin(11, 1) == -EINPROGRESS && begin(12, 1) == -EINPROGRESS);
	end_inspection(0);
	cr_assert(is_at(0, 11, "sampling") && attaches(1, 12) && reported == 0);
	cr_assert(begin(11, 1) == -EINPROGRESS && !looking_take(&set, 11, &opts));
	end_inspection(1);
	cr_assert(looking_cancel(&set, 12) && reported == 1);
	cr_assert_gt(turns, 0, "when sampling begins");
	now_ns += REFERENCE_TURN_NS;
	turns = 0;
	for (int i = 0; i < 100 && turns < 1; i++)
		cr_assert(sd_event_run(set.event, 100000) >= 0);
	cr_assert(turns == 1 && is_at(0, 11, "sampling"));
	now_ns += REFERENCE_NS;
	for (int i = 0; i < 100 && reported < 2; i++)
		cr_assert(sd_event_run(set.event, 100000) >= 0);
	cr_assert(reported == 2 && nothing_is_attached());
	tracee_free(looking_take(&set, 11, &opts));
	samples = false;
	teardown();
}

/* A request from before that is refused, as often as it asks; a later one begins anew. */
Test(looking, is_cancelled)
{
	cr_assert(begin(11, 900) == -EINPROGRESS && begin(12, 900) == -EINPROGRESS);
	cr_assert(!looking_cancel(&set, 13));
	cr_assert(looking_cancel(&set, 11));
	cr_assert(alive == 1 && reported == 1 && sessions_looked(&set, 11));
	cr_assert(attaches(0, 12) && !looking_cancel(&set, 11));
	cr_assert(begin(11, 900) == -ECANCELED && begin(11, 1000) == -ECANCELED);
	now_ns = 1001;
	cr_assert(begin(11, 1001) == -EINPROGRESS && alive == 2);
	sessions_cancel_attaching(&set);
	cr_assert(alive == 0 && nothing_is_attached());
	cr_assert(begin(11, 900) == -ECANCELED && begin(12, 900) == -ECANCELED);
	cr_assert(!looking_take(&set, 11, &opts) && begin(11, 0) == -EINPROGRESS);
	teardown();
}

static void run_until_reported(unsigned int n)
{
	for (int i = 0; i < 100 && reported < n; i++)
		cr_assert(sd_event_run(set.event, 100000) >= 0);
	cr_assert_eq(reported, n);
}

static void run_until_at(size_t i, pid_t pid, const char *step)
{
	for (int n = 0; n < 100 && !is_at(i, pid, step); n++)
		cr_assert(sd_event_run(set.event, 100000) >= 0);
	cr_assert(is_at(i, pid, step), "%d is not at %s", pid, step);
}

/* Then its calls are counted, as often as it takes. */
Test(looking, is_forecast)
{
	samples = counts = true;
	cr_assert(begin(11, 1) == -EINPROGRESS);
	end_inspection(0);
	cr_assert(is_at(0, 11, "sampling") && prepared == 1 && moments == 0);
	now_ns += REFERENCE_NS;
	for (int i = 0; i < 100 && moments < 1; i++)
		cr_assert(sd_event_run(set.event, 100000) >= 0);
	cr_assert(is_at(0, 11, "forecasting") && !looking_seen(&set, 11));
	now_ns += SURVEY_NS;
	for (int i = 0; i < 100 && moments < 2; i++)
		cr_assert(sd_event_run(set.event, 100000) >= 0);
	cr_assert(is_at(0, 11, "forecasting") && reported == 0);
	now_ns += SURVEY_NS;
	run_until_reported(1);
	cr_assert(moments == 3 && prepared == 1 && looking_seen(&set, 11));
	tracee_free(looking_take(&set, 11, &opts));
	samples = counts = false;
	moments = 0;
	teardown();
}

/*
 * The self-test has a step of its own, in which the loop goes on. The cost of hits is measured
 * meanwhile.
 */
Test(looking, is_verified)
{
	verifies = samples = true;
	cr_assert(begin(11, 1) == -EINPROGRESS && begin(12, 1) == -EINPROGRESS);
	end_inspection(0);
	cr_assert(is_at(0, 11, "verifying") && attaches(1, 12) && prepared == 1);
	cr_assert(calibrations == 0 && reported == 0 && begin(11, 1) == -EINPROGRESS);
	end_inspection(1);
	cr_assert(is_at(1, 12, "verifying") && prepared == 2);
	signal_fd(verdicts[1]);
	run_until_at(1, 12, "sampling");
	cr_assert(is_at(0, 11, "verifying") && calibrations == 1);
	signal_fd(verdicts[0]);
	run_until_at(0, 11, "sampling");
	cr_assert(prepared == 2 && calibrations == 2 && reported == 0);
	teardown();
}

/* Each step can be cancelled, which frees the target and what works for it. */
Test(looking, is_cancelled_in_each_step)
{
	verifies = samples = true;
	cr_assert(begin(11, 900) == -EINPROGRESS && begin(12, 900) == -EINPROGRESS);
	end_inspection(0);
	cr_assert(is_at(0, 11, "verifying") && looking_cancel(&set, 11) && alive == 1);
	verifies = false;
	end_inspection(1);
	cr_assert(is_at(0, 12, "sampling") && looking_cancel(&set, 12) && alive == 0);
	cr_assert(reported == 2 && nothing_is_attached());
	cr_assert(begin(11, 900) == -ECANCELED && begin(12, 900) == -ECANCELED);
	signal_fd(verdicts[0]);
	cr_assert(sd_event_run(set.event, 0) >= 0);
	cr_assert(reported == 2, "nobody listens any more");
	teardown();
}

/* Programs are loaded on a thread, from the beginning; the loop goes on, and it can be cancelled. */
Test(looking, waits_for_programs)
{
	samples = counts = verifies = observers_load = target_loads = true;
	cr_assert(begin(11, 1) == -EINPROGRESS && begin(12, 1) == -EINPROGRESS);
	end_inspection(0);
	cr_assert(is_at(0, 11, "verifying") && loads == 1 && observed == 1);
	looking_loaded(&set);
	signal_fd(verdicts[0]);
	run_until_at(0, 11, "loading");
	looking_loaded(&set);
	cr_assert(is_at(0, 11, "loading") && attaches(1, 12) && turns == 0);
	observers_load = false;
	looking_loaded(&set);
	cr_assert(is_at(0, 11, "sampling") && attaches(1, 12) && turns > 0);
	now_ns += REFERENCE_NS;
	looking_loaded(&set);
	cr_assert(is_at(0, 11, "forecasting") && moments == 1);
	/* it needs other programs now */
	observers_load = true;
	now_ns += SURVEY_NS;
	looking_loaded(&set);
	cr_assert(is_at(0, 11, "forecasting") && moments == 1);
	observers_load = false;
	looking_loaded(&set);
	cr_assert(is_at(0, 11, "forecasting") && moments == 2);
	now_ns += SURVEY_NS;
	looking_loaded(&set);
	cr_assert(is_at(0, 11, "loading") && moments == 3 && reported == 0);
	target_loads = false;
	looking_loaded(&set);
	cr_assert(reported == 1 && begin(11, 1) == 0);
	target_loads = true;
	signal_fd(verdicts[1]);
	samples = counts = false;
	end_inspection(1);
	run_until_at(0, 12, "loading");
	cr_assert(looking_cancel(&set, 12) && reported == 2 && nothing_is_attached());
	looking_loaded(&set);
	cr_assert(reported == 2);
	verifies = target_loads = false;
	moments = 0;
	teardown();
}

/* The last step; also if there was nothing to wait for before. */
Test(looking, measures_the_pace)
{
	has_pace = true;
	cr_assert(begin(11, 1) == -EINPROGRESS && begin(12, 1) == -EINPROGRESS);
	end_inspection(0);
	cr_assert(is_at(0, 11, "pacing") && paces == 1 && reported == 0);
	looking_loaded(&set);
	cr_assert(paces == 1, "only when it is due");
	now_ns += 1000000;
	looking_loaded(&set);
	cr_assert(is_at(0, 11, "pacing") && paces == 2);
	now_ns += 1000000;
	run_until_reported(1);
	cr_assert(paces == 3 && begin(11, 1) == 0);
	target_loads = true;
	end_inspection(1);
	cr_assert(is_at(0, 12, "loading") && paces == 3);
	target_loads = false;
	looking_loaded(&set);
	cr_assert(is_at(0, 12, "pacing") && looking_cancel(&set, 12));
	cr_assert(nothing_is_attached());
	has_pace = false;
	paces = 0;
	teardown();
}

/* A process that is stopped is not observed. */
Test(looking, is_not_observed_while_stopped)
{
	samples = counts = has_pace = true;
	cr_assert(begin_with(&(struct looking_of){.pid = 11, .opts = &opts, .stopped = true}) ==
		  -EINPROGRESS);
	end_inspection(0);
	cr_assert(reported == 1 && prepared == 1 && moments == 0 && nothing_is_attached());
	cr_assert(loads == 1 && observed == 0 && paces == 0);
	has_pace = false;
	cr_assert(begin(11, 1) == 0);
	teardown();
}

/* What was proven for other options is begun anew, once that has ended. */
Test(looking, other_options_begin_anew)
{
	const struct target_opts windowed = {.max_overhead = 5}, verified = {.verify = true};
	const struct looking_of a = {.pid = 11, .opts = &windowed},
				b = {.pid = 11, .opts = &verified};
	struct tracee *t;

	cr_assert(begin(11, 1) == -EINPROGRESS && begin_with(&a) == -EINPROGRESS && begun == 1);
	end_inspection(0);
	cr_assert(!looking_take(&set, 11, &windowed), "of another collector");
	cr_assert(begin(11, 1) == -EINPROGRESS && begun == 2, "a failed take has dropped it");
	end_inspection(1);
	cr_assert(begin(11, 1) == 0 && begin_with(&b) == -EINPROGRESS && begun == 3);
	cr_assert(alive == 1);
	end_inspection(2);
	cr_assert(begin_with(&b) == 0);
	t = looking_take(&set, 11, &verified);
	cr_assert(t && t->opts.verify);
	tracee_free(t);
	teardown();
}

static unsigned int second;

/* Each listener is called until it is removed. */
Test(looking, calls_all_listeners)
{
	struct sessions_listener other = {.looked = on_looked, .ctx = &second};

	sessions_listen(&set, &other);
	cr_assert(begin(11, 1) == -EINPROGRESS && begin(12, 1) == -EINPROGRESS);
	end_inspection(0);
	cr_assert(reported == 1 && second == 1);
	sessions_unlisten(&set, &listener);
	sessions_unlisten(&set, &listener);
	end_inspection(1);
	cr_assert(reported == 1 && second == 2);
	sessions_unlisten(&set, &other);
	cr_assert(!set.listeners);
	teardown();
}

/* An inspection that has ended cannot be cancelled: its request attaches in the next moment. */
Test(looking, is_not_cancelled_when_done)
{
	cr_assert(begin(11, 900) == -EINPROGRESS);
	end_inspection(0);
	cr_assert(!looking_cancel(&set, 11));
	sessions_cancel_attaching(&set);
	cr_assert(begin(11, 900) == 0 && alive == 1);
	teardown();
}

/* The set is freed while inspections are under way. */
Test(looking, ends_with_the_set)
{
	cr_assert(begin(11, 1) == -EINPROGRESS && begin(12, 1) == -EINPROGRESS);
	teardown();
}
