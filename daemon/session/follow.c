// SPDX-License-Identifier: BSD-2-Clause
/*
 * Following children.
 *
 * The kernel reports a fork in the ring of the parent, or of an ancestor as long as the parent has
 * no probe of its own, and wakes the daemon. The child becomes a target like any other, with its
 * own ring and link. The slow steps are not repeated for it: the parent's plan and self-test are
 * valid for it, and a few probes are always loaded in advance (spares), on a thread. What the child did
 * before its link existed is missing from its profile; reports state this gap.
 *
 * All of this runs in a separate event source (work), one step at a time, so that rings are drained
 * and clients are served in between. Functions here do not change the set of targets while a caller
 * iterates over it.
 *
 * A target that a user attached and all targets followed from it form a process tree; for that user
 * it has ended when all of them have ended. The number of live children is limited. Of the children
 * that have ended, the newest are kept as they are, older ones are folded into one
 * (snapshot/fold.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "base/log.h"
#include "session/set.h"
#include "snapshot/fold.h"
#include "snapshot/merge.h"
#include "target/deadline.h"

#define SPARES	      4
#define MAX_TASKS     4096
#define KEEP_ENDED    16
#define RETRY_NS      1000000ull
#define RETRY_FOR_NS  2000000000ull /* from the first attempt on */
#define RETRY_LATE_NS 100000000ull  /* of an inspection that takes longer */

struct process_tree {
	unsigned int refs;
	struct session *root; /* the target that the user attached; NULL: it was removed */
	struct probe *spare[SPARES];
	size_t nspares;
	struct probe *loading; /* the next one */
	bool no_spares;	       /* a spare could not be opened: do not try again */
	bool limit_reported;
};

/* ---- process trees ---------------------------------------------------------------------- */

static void process_tree_drop_spares(struct process_tree *f)
{
	probe_free(TAKE_PTR(f->loading));
	while (f->nspares)
		probe_free(f->spare[--f->nspares]);
}

static void process_tree_unref(struct process_tree *f)
{
	if (--f->refs)
		return;
	process_tree_drop_spares(f);
	free(f);
}

static void process_tree_join(struct session *s, struct process_tree *f)
{
	f->refs++;
	s->process_tree = f;
	tracee_follow(s->tracee);
}

int follow_begin(struct session *s, struct diag *diag)
{
	struct process_tree *f = calloc(1, sizeof(*f));

	if (!f)
		return diag_errno(diag, ENOMEM, "cannot follow children");
	f->root = s;
	process_tree_join(s, f);
	return 0;
}

static bool process_tree_traces(const struct sessions *ss, const struct process_tree *f)
{
	for (size_t i = 0; i < ss->n; i++)
		if (ss->v[i]->process_tree == f && ss->v[i]->tracee->state == SESSION_TRACING)
			return true;
	return false;
}

bool follow_goes_on(const struct session *s)
{
	const struct sessions *ss = s->set;

	for (size_t i = 0; s->process_tree && i < ss->n; i++)
		if (ss->v[i]->process_tree == s->process_tree &&
		    ss->v[i]->tracee->state != SESSION_ENDED)
			return true;
	for (size_t i = 0; s->process_tree && i < ss->ntasks; i++)
		if (ss->tasks[i].origin->process_tree == s->process_tree)
			return true;
	return false;
}

bool follow_stems_from(const struct session *s, const struct session *from)
{
	const struct sessions *ss = s->set;

	if (s == from)
		return true;
	if (!s->process_tree || s->process_tree != from->process_tree)
		return false;
	if (from->process_tree->root == from)
		return true;
	/* at most as many steps as there are targets: reused pids could form a cycle */
	for (size_t i = 0; s && i < ss->n; i++) {
		s = sessions_find(ss, s->tracee->parent);
		if (s == from)
			return true;
	}
	return false;
}

/* ---- tasks ------------------------------------------------------------------------------- */

static void work_soon(struct sessions *ss)
{
	(void)sd_event_source_set_enabled(ss->work, SD_EVENT_ONESHOT);
}

static struct follow_task *task_find(struct sessions *ss, pid_t pid)
{
	for (size_t i = 0; i < ss->ntasks; i++)
		if (ss->tasks[i].news.pid == pid)
			return &ss->tasks[i];
	return NULL;
}

static void task_remove(struct sessions *ss, size_t i)
{
	tracee_free(ss->tasks[i].half);
	ss->ntasks--;
	memmove(&ss->tasks[i], &ss->tasks[i + 1], (ss->ntasks - i) * sizeof(*ss->tasks));
}

static bool is_target(const struct sessions *ss, pid_t pid)
{
	const struct session *s = sessions_find(ss, pid);

	return s && s->tracee->state != SESSION_ENDED && target_alive(s->tracee->target);
}

static void task_add(struct session *s, const struct tracee_news *news)
{
	struct sessions *ss = s->set;
	struct follow_task *known = task_find(ss, news->pid), *tasks = NULL;

	if (known) {
		known->news.executed |= news->executed;
		return;
	}
	if (is_target(ss, news->pid))
		return;
	if (ss->ntasks < MAX_TASKS)
		tasks = reallocarray(ss->tasks, ss->ntasks + 1, sizeof(*ss->tasks));
	if (!tasks) {
		s->tracee->children.failed++;
		tracee_sweep_child(s->tracee, news->pid);
		return;
	}
	ss->tasks = tasks;
	tasks[ss->ntasks++] = (struct follow_task){
		.origin = s,
		.news = *news,
	};
	work_soon(ss);
}

void follow_take_news(struct session *s)
{
	struct tracee *t = s->tracee;

	for (size_t i = 0; i < t->nnews; i++)
		task_add(s, &t->news[i]);
	t->nnews = 0;
}

void follow_look(struct session *s)
{
	_cleanup_free_ pid_t *pids = NULL;
	pid_t pid = s->tracee->target->pid;
	size_t n;

	if (!s->process_tree || s->tracee->state != SESSION_TRACING)
		return;
	work_soon(s->set); /* to load spares */
	pids = calloc(TARGET_MAX_CHILDREN, sizeof(*pids));
	n = pids ? target_children(pid, pids, TARGET_MAX_CHILDREN) : 0;
	for (size_t i = 0; i < n; i++)
		task_add(s, &(struct tracee_news){.pid = pids[i], .parent = pid});
}

/* ---- one child --------------------------------------------------------------------------- */

static size_t live_children(const struct sessions *ss)
{
	size_t n = 0;

	for (size_t i = 0; i < ss->n; i++)
		n += ss->v[i]->tracee->parent && ss->v[i]->tracee->state != SESSION_ENDED;
	return n;
}

/*
 * Returns 0 if another child may be followed, -ENOSPC if the limit is reached, -ENOEXEC if it is
 * reached and the child runs another program, so it would not be followed anyway.
 */
static int no_room(struct sessions *ss, const struct session *origin, pid_t pid)
{
	size_t max = ss->opts.max_children ? ss->opts.max_children : SESSION_MAX_CHILDREN;

	if (live_children(ss) < max)
		return 0;
	if (!tracee_same_program(origin->tracee, pid))
		return -ENOEXEC;
	if (!origin->process_tree->limit_reported)
		log_warning("limit of %zu followed children reached; "
			    "new ones are ignored until some end",
			    max);
	origin->process_tree->limit_reported = true;
	return -ENOSPC;
}

/* Stop reporting this process's children from other probes of the tree. */
static void disown(const struct sessions *ss, const struct process_tree *f, pid_t pid)
{
	for (size_t i = 0; i < ss->n; i++)
		if (ss->v[i]->process_tree == f && ss->v[i]->tracee->probe)
			probe_follow_forget(ss->v[i]->tracee->probe, pid);
}

static int make_session(struct session *origin, const struct tracee_news *news,
			struct tracee **half, struct session **ret)
{
	struct sessions *ss = origin->set;
	struct process_tree *f = origin->process_tree;
	struct probe *spare = f->nspares ? f->spare[--f->nspares] : NULL;
	struct tracee *t;
	int r = !spare && f->no_spares ? tracee_open_spare(origin->tracee, &spare) : 0;

	if (r < 0)
		return r;
	r = tracee_fork(origin->tracee, news, half, &spare, &t, NULL);
	if (spare)
		f->spare[f->nspares++] = spare;
	return r < 0 ? r : session_new(ss, t, ret, NULL);
}

/* Makes a child a target. It is not started if its parent is stopped. Errors as for tracee_fork. */
static int follow_child(struct session *origin, const struct tracee_news *news,
			struct tracee **half)
{
	_cleanup_(session_freep) struct session *s = NULL;
	struct sessions *ss = origin->set;
	const struct session *old = sessions_find(ss, news->pid);
	int r;

	/* The pid belonged to a target until now, whose end the event loop has not handled yet. */
	if (old && old->tracee->state != SESSION_ENDED)
		return -EAGAIN;
	r = make_session(origin, news, half, &s);
	if (r < 0)
		return r;
	process_tree_join(s, origin->process_tree);
	if (!tracee_stops(origin->tracee))
		r = tracee_start(s->tracee, NULL);
	if (r < 0)
		return r;
	r = follow_forget(ss, news->pid);
	if (r == 0)
		r = sessions_add(ss, s);
	if (r < 0)
		return r;
	disown(ss, s->process_tree, news->pid);
	log_info("following process %d, a child of %d", news->pid, s->tracee->parent);
	follow_look(TAKE_PTR(s));
	return 0;
}

/*
 * Counts the outcome r of following a child. A child that is not followed may have been the last
 * process of its tree, so the end of the tree is reported here as well.
 */
static void task_done(struct session *origin, const struct tracee_news *news, int r)
{
	struct snapshot_children *c = &origin->tracee->children;
	const struct session_opts *opts = &origin->set->opts;

	if (r == 0)
		c->followed++;
	else if (r == -ENOSPC)
		c->over_limit++;
	else if (r == -ESRCH)
		c->ended_first++;
	else if (r != -ENOEXEC)
		c->failed++;
	if (r == 0)
		return;
	log_debug("process %d is not followed: %s", news->pid, strerror(-r));
	if (r != -ENOEXEC && r != -ESRCH)
		tracee_sweep_child(origin->tracee, news->pid);
	if (opts->on_end && !follow_goes_on(origin))
		opts->on_end(opts->ctx, news->pid);
}

/*
 * Returns whether to try again after the outcome r. On a busy machine, an inspection that has begun
 * may take longer than RETRY_FOR_NS; it has a deadline of its own.
 */
static bool task_retry(struct follow_task *task, int r, struct tracee **half)
{
	const uint64_t now = tracee_now();
	const bool late = now >= task->until_ns;

	if (r != -EAGAIN && !deadline_missed(r))
		return false;
	if (late && !*half)
		return false;
	task->retry_ns = now + (late ? RETRY_LATE_NS : RETRY_NS);
	task->half = TAKE_PTR(*half);
	return true;
}

/*
 * Following a child may change the list of tasks, and may remove an ended target with the child's
 * pid, even the origin.
 */
static void task_run(struct sessions *ss, size_t i)
{
	const struct tracee_news news = ss->tasks[i].news;
	_cleanup_(tracee_freep) struct tracee *half = TAKE_PTR(ss->tasks[i].half);
	struct follow_task *task;
	struct session *origin;
	int r = no_room(ss, ss->tasks[i].origin, news.pid);

	if (!ss->tasks[i].until_ns)
		ss->tasks[i].until_ns = tracee_now() + RETRY_FOR_NS;
	if (r == 0)
		r = follow_child(ss->tasks[i].origin, &news, &half);
	/* regardless of which step failed */
	if (r < 0 && target_ending(news.pid))
		r = -ESRCH;
	task = task_find(ss, news.pid);
	if (!task || task_retry(task, r, &half))
		return;
	origin = task->origin;
	task_remove(ss, (size_t)(task - ss->tasks));
	task_done(origin, &news, r);
}

/* Returns the index of a task that is due, of one target or of all (NULL); -1: none. */
static int next_task(const struct sessions *ss, const struct session *origin)
{
	uint64_t now = tracee_now();

	for (size_t i = 0; i < ss->ntasks; i++)
		if ((!origin || ss->tasks[i].origin == origin) && ss->tasks[i].retry_ns <= now)
			return (int)i;
	return -1;
}

void follow_now(struct session *s)
{
	struct sessions *ss = s->set;

	for (int i; (i = next_task(ss, s)) >= 0;)
		task_run(ss, (size_t)i);
}

void follow_retry(struct sessions *ss)
{
	if (ss->ntasks)
		work_soon(ss);
}

/* ---- children that have ended ------------------------------------------------------------ */

/* Removes an ended target and folds its figures into ss->folded. */
static int fold(struct sessions *ss, struct session *s)
{
	_cleanup_(snapshot_freep) struct snapshot *one = NULL;
	int r;

	r = sessions_snapshot(ss, s->tracee->target->pid, &one, NULL);
	if (r == 0)
		r = snapshot_fold(&ss->folded, one, FOLD_MAX_NODES);
	if (r == 0)
		sessions_remove(ss, s);
	return r;
}

int follow_forget(struct sessions *ss, pid_t pid)
{
	struct session *s = sessions_find(ss, pid);
	int r = s ? fold(ss, s) : 0;

	if (s && r == 0)
		log_info("pid %d belongs to another process now: the profile of the ended one is "
			 "kept with those of other ended processes",
			 pid);
	return r;
}

static void fold_old(struct sessions *ss)
{
	size_t ended = 0;

	for (size_t i = ss->n; i-- > 0;) {
		struct session *s = ss->v[i];

		if (!s->tracee->parent || s->tracee->state != SESSION_ENDED)
			continue;
		if (++ended > KEEP_ENDED && fold(ss, s) < 0)
			return; /* out of memory: retry later */
	}
}

int follow_add_folded(const struct sessions *ss, struct snapshot **s)
{
	const struct snapshot *list[] = {*s, ss->folded};
	struct snapshot *merged;
	int r;

	if (!ss->folded)
		return 0;
	r = snapshot_merge(list, 2, &merged);
	if (r < 0)
		return r;
	snapshot_free(*s);
	*s = merged;
	return 0;
}

void follow_clear(struct sessions *ss)
{
	snapshot_free(TAKE_PTR(ss->folded));
}

/* ---- event loop -------------------------------------------------------------------------- */

/* Returns whether a child waits for a probe. */
static bool is_wanted(const struct sessions *ss, const struct process_tree *f)
{
	for (size_t i = 0; !f->nspares && i < ss->ntasks; i++)
		if (ss->tasks[i].origin->process_tree == f)
			return true;
	return false;
}

static void take_loaded(struct process_tree *f)
{
	struct probe *p;

	if (!f->loading || !probe_is_ready(f->loading))
		return;
	p = TAKE_PTR(f->loading);
	f->no_spares = probe_opened(p, NULL) != 0;
	if (f->no_spares)
		probe_free(p);
	else
		f->spare[f->nspares++] = p;
}

/* Each process tree has so many probes for future children. */
static void fill_spares(struct sessions *ss)
{
	for (size_t i = 0; i < ss->n; i++) {
		struct session *s = ss->v[i];
		struct process_tree *f = s->process_tree;

		if (!f)
			continue;
		take_loaded(f);
		if (f->loading || f->no_spares || f->nspares == SPARES)
			continue;
		if (s->tracee->state != SESSION_TRACING && !is_wanted(ss, f))
			continue;
		f->no_spares = tracee_load_spare(s->tracee, &f->loading) != 0;
	}
}

void follow_loaded(struct sessions *ss)
{
	fill_spares(ss);
	follow_retry(ss);
}

static int on_work(sd_event_source *source, void *ctx)
{
	struct sessions *ss = ctx;
	int i;

	(void)source;
	sessions_read_rings(ss);
	fold_old(ss);
	fill_spares(ss);
	i = next_task(ss, NULL);
	if (i < 0)
		return 0;
	task_run(ss, (size_t)i);
	work_soon(ss);
	return 0;
}

int follow_init(struct sessions *ss)
{
	int r = sd_event_add_defer(ss->event, &ss->work, on_work, ss);

	return r < 0 ? r : sd_event_source_set_enabled(ss->work, SD_EVENT_OFF);
}

void follow_deinit(struct sessions *ss)
{
	sd_event_source_disable_unref(ss->work);
	snapshot_free(ss->folded);
	while (ss->ntasks)
		task_remove(ss, ss->ntasks - 1);
	free(ss->tasks);
}

void follow_stopped(struct sessions *ss)
{
	for (size_t i = 0; i < ss->n; i++)
		if (ss->v[i]->process_tree && !process_tree_traces(ss, ss->v[i]->process_tree))
			process_tree_drop_spares(ss->v[i]->process_tree);
}

void follow_ended(struct session *s)
{
	if (!s->process_tree)
		return;
	s->process_tree->limit_reported = false;
	follow_stopped(s->set);
	work_soon(s->set);
}

/*
 * Passes the task to another target of the process tree. It runs the same program, so it can follow
 * the child as well. Drops the task if there is none.
 */
static void task_hand_over(struct sessions *ss, size_t i)
{
	const struct session *from = ss->tasks[i].origin;

	for (size_t k = 0; from->process_tree && k < ss->n; k++)
		if (ss->v[k] != from && ss->v[k]->process_tree == from->process_tree) {
			ss->tasks[i].origin = ss->v[k];
			return;
		}
	task_remove(ss, i);
}

void follow_leave(struct session *s)
{
	struct sessions *ss = s->set;

	for (size_t i = ss->ntasks; i-- > 0;)
		if (ss->tasks[i].origin == s)
			task_hand_over(ss, i);
	if (!s->process_tree)
		return;
	if (s->process_tree->root == s)
		s->process_tree->root = NULL;
	process_tree_unref(s->process_tree);
	s->process_tree = NULL;
}

static bool any_process_tree(const struct sessions *ss)
{
	for (size_t i = 0; i < ss->n; i++)
		if (ss->v[i]->process_tree)
			return true;
	return false;
}

/* Only the root of a process tree takes the others with it. */
static bool is_detached_with(const struct session *s, const struct session *detached)
{
	const struct process_tree *f = detached->process_tree;

	return s == detached || (f && f->root == detached && s->process_tree == f);
}

bool sessions_detached_with(const struct sessions *ss, pid_t pid, pid_t detached)
{
	const struct session *s = sessions_find(ss, pid), *root = sessions_find(ss, detached);

	return s && root && is_detached_with(s, root);
}

void follow_detach(struct sessions *ss, struct session *s)
{
	for (size_t i = ss->n; i-- > 0;)
		if (ss->v[i] != s && is_detached_with(ss->v[i], s))
			sessions_remove(ss, ss->v[i]);
	sessions_remove(ss, s);
	if (!any_process_tree(ss))
		follow_clear(ss);
}
