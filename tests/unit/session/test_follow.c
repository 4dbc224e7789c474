// SPDX-License-Identifier: BSD-2-Clause
/*
 * session/follow: pids that are used again. Targets are made up: the set of sessions and the life of
 * a target are replaced by functions of the test, which are linked instead of the archive's.
 */
#include <errno.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "session/set.h"

static uint64_t now_ns = 1000;
static pid_t not_yet;	    /* tracee_fork returns -EAGAIN for this pid */
static unsigned int forked; /* how often tracee_fork has made a target */

/* ---- a set of sessions -------------------------------------------------------------------- */

struct session *sessions_find(const struct sessions *ss, pid_t pid)
{
	for (size_t i = 0; i < ss->n; i++)
		if (ss->v[i]->tracee->target->pid == pid)
			return ss->v[i];
	return NULL;
}

int sessions_add(struct sessions *ss, struct session *s)
{
	ss->v = realloc(ss->v, (ss->n + 1) * sizeof(*ss->v));
	ss->v[ss->n++] = s;
	return 0;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	follow_leave(s);
	free(s->tracee->target);
	free(s->tracee);
	free(s);
}

void sessions_remove(struct sessions *ss, struct session *s)
{
	size_t i = 0;

	while (ss->v[i] != s)
		i++;
	memmove(&ss->v[i], &ss->v[i + 1], (ss->n - i - 1) * sizeof(*ss->v));
	ss->n--;
	session_free(s);
}

int session_new(struct sessions *ss, struct tracee *t, struct session **ret, struct diag *diag)
{
	(void)diag;
	*ret = calloc(1, sizeof(**ret));
	**ret = (struct session){.tracee = t, .set = ss};
	return 0;
}

void sessions_read_rings(struct sessions *ss)
{
	(void)ss;
}

int sessions_snapshot(struct sessions *ss, pid_t pid, struct snapshot **ret, struct diag *diag)
{
	char text[64];

	(void)ss, (void)diag;
	snprintf(text, sizeof(text), "target %d\nthread %d %d main\nf a.py:1 1 1000\n", pid, pid,
		 pid);
	*ret = snapshot_build(text);
	return 0;
}

/* ---- a target ----------------------------------------------------------------------------- */

uint64_t tracee_now(void)
{
	return now_ns;
}

static struct tracee *tracee_of(pid_t pid, pid_t parent, enum session_state state)
{
	struct tracee *t = calloc(1, sizeof(*t));

	t->target = calloc(1, sizeof(*t->target));
	t->target->pid = pid;
	t->target->pidfd = -1;
	t->parent = parent;
	t->state = state;
	return t;
}

int tracee_fork(const struct tracee *from, const struct tracee_news *news, struct tracee **half,
		struct probe **spare, struct tracee **ret, struct diag *diag)
{
	(void)half, (void)diag;
	if (news->pid == not_yet || !*spare)
		return -EAGAIN;
	forked++;
	*spare = NULL;
	*ret = tracee_of(news->pid, from->target->pid, SESSION_ATTACHED);
	return 0;
}

void tracee_free(struct tracee *t)
{
	free(t);
}

int tracee_start(struct tracee *t, struct diag *diag)
{
	(void)diag;
	t->state = SESSION_TRACING;
	return 0;
}

bool tracee_stops(const struct tracee *t)
{
	return t->state == SESSION_ATTACHED;
}

bool tracee_same_program(const struct tracee *t, pid_t pid)
{
	(void)t, (void)pid;
	return true;
}

/* Probes for children */
static char a_probe;
static bool cannot_load, not_loaded; /* loading fails; goes on */
static unsigned int loads, opened;

int tracee_open_spare(const struct tracee *from, struct probe **ret)
{
	(void)from;
	opened++;
	*ret = (struct probe *)(void *)&a_probe;
	return 0;
}

int tracee_load_spare(const struct tracee *from, struct probe **ret)
{
	(void)from;
	loads++;
	*ret = (struct probe *)(void *)&a_probe;
	return 0;
}

bool probe_is_ready(const struct probe *p)
{
	(void)p;
	return !not_loaded;
}

int probe_opened(struct probe *p, struct diag *diag)
{
	(void)p, (void)diag;
	return cannot_load ? -ENOTSUP : 0;
}

void tracee_follow(struct tracee *t)
{
	(void)t;
}

void tracee_sweep_child(struct tracee *t, pid_t child)
{
	(void)t, (void)child;
}

bool target_alive(const struct target *t)
{
	(void)t;
	return true;
}

bool target_ending(pid_t pid)
{
	(void)pid;
	return false;
}

size_t target_children(pid_t pid, pid_t *out, size_t max)
{
	(void)pid, (void)out, (void)max;
	return 0;
}

void probe_free(struct probe *p)
{
	(void)p;
}

void probe_follow_forget(struct probe *p, pid_t descendant)
{
	(void)p, (void)descendant;
}

/* ---- the tests ---------------------------------------------------------------------------- */

static struct sessions ss;

static struct session *add(pid_t pid, enum session_state state)
{
	struct session *s;

	assert_ok(session_new(&ss, tracee_of(pid, 0, state), &s, NULL));
	assert_ok(sessions_add(&ss, s));
	return s;
}

static void announce(struct session *s, pid_t child)
{
	s->tracee->news[s->tracee->nnews++] =
		(struct tracee_news){.pid = child, .parent = s->tracee->target->pid};
	follow_take_news(s);
}

/* A child of it, by the way that children take. */
static struct session *add_child(struct session *parent, pid_t pid)
{
	announce(parent, pid);
	follow_loaded(&ss); /* begins to load a probe */
	follow_loaded(&ss);
	follow_now(parent);
	cr_assert(sessions_find(&ss, pid));
	return sessions_find(&ss, pid);
}

/* Returns a target whose children are followed. */
static struct session *begin(pid_t pid, enum session_state state)
{
	struct session *s;

	ss = (struct sessions){0};
	not_yet = 0;
	cannot_load = not_loaded = false;
	loads = opened = 0;
	assert_ok(sd_event_new(&ss.event));
	assert_ok(follow_init(&ss) < 0);
	s = add(pid, state);
	assert_ok(follow_begin(s, NULL));
	return s;
}

static void run(void)
{
	for (int i = 0; i < 100 && sd_event_run(ss.event, 0) > 0; i++)
		now_ns += 1000;
	now_ns += 10000000;
}

/* Run the event loop until it has nothing to do, and again when a probe was loaded. */
static void work(void)
{
	run();
	follow_loaded(&ss);
	run();
}

static void end(void)
{
	while (ss.n)
		sessions_remove(&ss, ss.v[ss.n - 1]);
	cr_assert(ss.ntasks == 0);
	follow_deinit(&ss);
	sd_event_unref(ss.event);
	free(ss.v);
	check_no_leaks();
}

Test(follow, a_child_has_the_pid_of_the_process_that_announced_it)
{
	struct session *root, *child;

	root = begin(100, SESSION_TRACING);
	child = add_child(root, 101);
	child->tracee->state = SESSION_ENDED;
	/* 101 has ended; before that it announced a child, which by now has that very pid */
	announce(child, 101);
	work();
	cr_assert(ss.n == 2 && ss.ntasks == 0);
	cr_assert(sessions_find(&ss, 101)->tracee->state == SESSION_TRACING);
	cr_assert(ss.folded, "the data of the ended process is gone");
	end();
}

/* The same where no process of the tree is left that could take over what is to be done. */
Test(follow, a_child_has_the_pid_of_the_only_target)
{
	struct session *root;

	root = begin(100, SESSION_TRACING);
	root->tracee->state = SESSION_ENDED;
	announce(root, 100);
	work();
	cr_assert(ss.n == 1 && ss.ntasks == 0);
	cr_assert(ss.v[0]->tracee->state == SESSION_TRACING);
	cr_assert(ss.folded, "the data of the ended process is gone");
	end();
}

Test(follow, children_of_a_departing_target_are_followed_by_another)
{
	struct session *root, *child;

	root = begin(100, SESSION_TRACING);
	child = add_child(root, 101);
	not_yet = 300;
	announce(child, 300);
	work();
	cr_assert(ss.ntasks == 1);
	child->tracee->state = SESSION_ENDED;
	announce(root, 101);
	work();
	cr_assert(ss.n == 2 && ss.ntasks == 1);
	cr_assert(ss.tasks[0].news.pid == 300 &&
		  ss.tasks[0].origin->tracee->state != SESSION_ENDED);
	not_yet = 0;
	follow_retry(&ss);
	work();
	cr_assert(sessions_find(&ss, 300), "process 300 is not followed");
	end();
}

Test(follow, the_end_of_a_target_comes_before_the_next_one_with_its_pid)
{
	struct session *root, *child;

	root = begin(100, SESSION_TRACING);
	child = add_child(root, 101);
	ss.tasks = reallocarray(ss.tasks, ++ss.ntasks, sizeof(*ss.tasks));
	ss.tasks[0] = (struct follow_task){
		.origin = root, .news = {.pid = 101, .parent = 100}, .until_ns = UINT64_MAX};
	follow_now(root);
	cr_assert(sessions_find(&ss, 101) == child, "it was removed while it is traced");
	now_ns += 10000000;
	child->tracee->state = SESSION_ENDED;
	follow_loaded(&ss); /* begins to load a probe for it */
	follow_loaded(&ss);
	follow_now(root);
	cr_assert(ss.n == 2 && ss.ntasks == 0 && forked == 2);
	end();
}

/* The event loop goes on while probes are loaded. */
Test(follow, child_waits_for_a_probe)
{
	struct session *parent;

	parent = begin(10, SESSION_TRACING);
	not_loaded = true;
	announce(parent, 11);
	work();
	work();
	cr_assert(loads == 1 && forked == 0 && ss.ntasks == 1, "one at a time");
	cr_assert(opened == 0 && follow_goes_on(parent));
	not_loaded = false;
	follow_loaded(&ss);
	work();
	cr_assert(forked == 1 && ss.ntasks == 0 && sessions_find(&ss, 11));
	for (int i = 0; i < 20; i++)
		follow_loaded(&ss);
	cr_assert(loads == 5, "%u instead of four more", loads);
	end();
}

/* No more are loaded in advance then; each child tries again. */
Test(follow, probes_cannot_be_loaded)
{
	struct session *parent;

	parent = begin(10, SESSION_TRACING);
	cannot_load = true;
	announce(parent, 11);
	work();
	work();
	announce(parent, 12);
	work();
	cr_assert(loads == 1 && opened == 2 && forked == 2);
	end();
}

/* It is not traced any more, but its child is followed all the same. */
Test(follow, child_of_a_stopped_target_has_a_probe)
{
	struct session *parent;

	parent = begin(10, SESSION_ATTACHED);
	follow_loaded(&ss);
	cr_assert(loads == 0);
	announce(parent, 11);
	work();
	cr_assert(forked == 1 && loads == 1, "%u loaded, %u followed", loads, forked);
	end();
}
