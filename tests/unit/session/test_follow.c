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
	(void)half, (void)spare, (void)diag;
	if (news->pid == not_yet)
		return -EAGAIN;
	forked++;
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

int tracee_open_spare(const struct tracee *from, struct probe **ret)
{
	(void)from, (void)ret;
	return -ENOTSUP;
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

/* A child of it, by the way that children take. */
static struct session *add_child(struct session *parent, pid_t pid)
{
	parent->tracee->news[parent->tracee->nnews++] =
		(struct tracee_news){.pid = pid, .parent = parent->tracee->target->pid};
	follow_take_news(parent);
	follow_now(parent);
	cr_assert(sessions_find(&ss, pid));
	return sessions_find(&ss, pid);
}

static void announce(struct session *s, pid_t child)
{
	s->tracee->news[s->tracee->nnews++] =
		(struct tracee_news){.pid = child, .parent = s->tracee->target->pid};
	follow_take_news(s);
}

static void begin(void)
{
	ss = (struct sessions){0};
	not_yet = 0;
	assert_ok(sd_event_new(&ss.event));
	assert_ok(follow_init(&ss) < 0);
}

/* Run the event loop until it has nothing to do. */
static void work(void)
{
	for (int i = 0; i < 100 && sd_event_run(ss.event, 0) > 0; i++)
		now_ns += 1000;
	now_ns += 10000000;
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

	begin();
	root = add(100, SESSION_TRACING);
	assert_ok(follow_begin(root, NULL));
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

	begin();
	root = add(100, SESSION_TRACING);
	assert_ok(follow_begin(root, NULL));
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

	begin();
	root = add(100, SESSION_TRACING);
	assert_ok(follow_begin(root, NULL));
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

	begin();
	root = add(100, SESSION_TRACING);
	assert_ok(follow_begin(root, NULL));
	child = add_child(root, 101);
	ss.tasks = reallocarray(ss.tasks, ++ss.ntasks, sizeof(*ss.tasks));
	ss.tasks[0] = (struct follow_task){
		.origin = root, .news = {.pid = 101, .parent = 100}, .until_ns = UINT64_MAX};
	follow_now(root);
	cr_assert(sessions_find(&ss, 101) == child, "it was removed while it is traced");
	now_ns += 10000000;
	child->tracee->state = SESSION_ENDED;
	follow_now(root);
	cr_assert(ss.n == 2 && ss.ntasks == 0 && forked == 2);
	end();
}
