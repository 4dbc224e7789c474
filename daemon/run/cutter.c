// SPDX-License-Identifier: BSD-2-Clause
/*
 * Intervals of the attached targets: see cutter.h.
 *
 * The snapshots that the next ones are subtracted from belong to the encoder's thread: only jobs use
 * them, one after the other. A target that has ended is cut once more, and not again unless its pid
 * is attached anew.
 */
#include "run/cutter.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <systemd/sd-event.h>

#include "base/log.h"
#include "push/labels.h"
#include "accuracy/finish.h"
#include "snapshot/since.h"

#define TARGETS_MAX 4096u

struct before {
	uint32_t pid;
	struct snapshot *snapshot; /* as taken */
	struct before *next;
};

struct cutter {
	struct cutter_opts opts;
	struct sd_event_source *timer;
	pid_t over[TARGETS_MAX]; /* ended and cut */
	size_t nover;
	struct before *before; /* the encoder thread's */
};

struct cut {
	struct cutter *cutter;
	struct snapshot *snapshot;
	uint8_t id[INTERVAL_ID_BYTES];
	bool last; /* of this target */
};

static void cut_free(struct cut *cut)
{
	if (!cut)
		return;
	snapshot_free(cut->snapshot);
	free(cut);
}
DEFINE_FREEP(struct cut, cut_free)

/* ---- in the encoder's thread ---- */

static struct before **find_before(struct cutter *c, uint32_t pid)
{
	struct before **at = &c->before;

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	return at;
}

static void before_free(struct before *b)
{
	if (!b)
		return;
	snapshot_free(b->snapshot);
	free(b);
}

/* Makes the cut's snapshot the difference to the one before, and a copy of it the next one. */
static int subtract(struct cut *cut)
{
	struct before **at = find_before(cut->cutter, cut->snapshot->targets[0].pid), *b = *at;
	struct snapshot *copy = cut->last ? NULL : snapshot_copy(cut->snapshot);

	if (!cut->last && !copy)
		return -ENOMEM;
	if (b && snapshot_subtract(cut->snapshot, b->snapshot) < 0) {
		snapshot_free(copy);
		return -ENOMEM;
	}
	if (b)
		*at = b->next;
	before_free(b);
	if (!copy)
		return 0;
	b = calloc(1, sizeof(*b));
	if (!b) {
		snapshot_free(copy);
		return -ENOMEM;
	}
	*b = (struct before){.pid = copy->targets[0].pid, .snapshot = copy};
	b->next = cut->cutter->before;
	cut->cutter->before = b;
	return 0;
}

static bool is_empty(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].calls || s->nodes[i].self[SNAPSHOT_CPU] ||
		    s->nodes[i].self[SNAPSHOT_WALL])
			return false;
	return true;
}

static int finish_interval(struct cut *cut, struct interval **ret)
{
	_cleanup_(interval_freep) struct interval *iv = NULL;
	const struct snapshot_target *t;
	struct snapshot *s;

	if (subtract(cut) < 0)
		return -ENOMEM;
	if (is_empty(cut->snapshot))
		return 0;
	if (snapshot_finish(cut->snapshot, false) < 0)
		return -ENOMEM;
	s = TAKE_PTR(cut->snapshot);
	t = &s->targets[0];
	iv = interval_new(cut->id, t->start_unix_ns,
			  t->end_unix_ns > t->start_unix_ns ? t->end_unix_ns : t->start_unix_ns, s);
	if (!iv || push_set_labels(iv, cut->cutter->opts.service) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(iv);
	return 0;
}

static int make(void *ctx, struct interval **ret, struct diag *diag)
{
	_cleanup_(cut_freep) struct cut *cut = ctx;
	int r = finish_interval(cut, ret);

	return r < 0 ? diag_errno(diag, -r, "cannot cut an interval") : 0;
}

static void cancel(void *ctx)
{
	cut_free(ctx);
}

/* ---- in the event loop ---- */

static int cut_target(struct cutter *c, pid_t pid, bool last)
{
	_cleanup_(cut_freep) struct cut *cut = calloc(1, sizeof(*cut));
	struct diag diag = {0};
	int r;

	if (!cut)
		return -ENOMEM;
	cut->cutter = c;
	cut->last = last;
	if (getrandom(cut->id, sizeof(cut->id), 0) != sizeof(cut->id))
		return -errno;
	r = sessions_snapshot(c->opts.sessions, pid, &cut->snapshot, &diag);
	if (r < 0 || cut->snapshot->ntargets != 1)
		return r < 0 ? r : -EINVAL;
	pusher_add_job(c->opts.pusher,
		       &(struct encoder_job){.make = make, .cancel = cancel, .ctx = TAKE_PTR(cut)});
	return 0;
}

static bool is_over(const struct cutter *c, pid_t pid)
{
	for (size_t i = 0; i < c->nover; i++)
		if (c->over[i] == pid)
			return true;
	return false;
}

static void set_over(struct cutter *c, pid_t pid, bool over)
{
	size_t i = 0;

	while (i < c->nover && c->over[i] != pid)
		i++;
	if (over && i == c->nover && i < TARGETS_MAX)
		c->over[c->nover++] = pid;
	else if (!over && i < c->nover)
		c->over[i] = c->over[--c->nover];
}

/* A failure only makes this target's next interval longer. */
static void cut_one(struct cutter *c, const struct session_status *st, bool last)
{
	bool over = st->state == SESSION_ENDED;
	int r;

	if (over && is_over(c, st->pid))
		return;
	r = cut_target(c, st->pid, last || over);
	if (r < 0)
		log_debug("cutting an interval of %d: %s", st->pid, strerror(-r));
	set_over(c, st->pid, over && r == 0);
}

void cutter_cut(struct cutter *c, pid_t pid, bool last)
{
	struct sessions *ss = c->opts.sessions;

	for (size_t i = 0; i < sessions_count(ss); i++) {
		struct session_status st;

		sessions_status(ss, i, &st);
		if (!pid || st.pid == pid || (last && sessions_detached_with(ss, st.pid, pid)))
			cut_one(c, &st, last);
	}
}

static int on_timer(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	struct cutter *c = userdata;

	(void)usec;
	(void)sd_event_source_set_time_relative(source, c->opts.every_ns / 1000);
	cutter_cut(c, 0, false);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int cutter_new(struct sd_event *event, const struct cutter_opts *opts, struct cutter **ret,
	       struct diag *diag)
{
	_cleanup_(cutter_freep) struct cutter *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return diag_errno(diag, ENOMEM, "cannot push");
	c->opts = *opts;
	r = sd_event_add_time_relative(event, &c->timer, CLOCK_MONOTONIC, opts->every_ns / 1000,
				       1000, on_timer, c);
	if (r < 0)
		return diag_errno(diag, -r, "cannot push");
	*ret = TAKE_PTR(c);
	return 0;
}

void cutter_finish(struct cutter *c)
{
	c->timer = sd_event_source_disable_unref(c->timer);
	cutter_cut(c, 0, true);
}

void cutter_free(struct cutter *c)
{
	if (!c)
		return;
	sd_event_source_disable_unref(c->timer);
	for (struct before *b = c->before, *after; b; b = after) {
		after = b->next;
		before_free(b);
	}
	free(c);
}
