// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finding the Python processes of the machine, and attaching to them: see continuous.h.
 *
 * Reports and scans make candidates. A candidate that is old enough is read once (find/process.h); if
 * it runs Python and is wanted, it becomes a member, and the sessions attach to it. All of that is done
 * in turns of a few milliseconds, and stops while the budget is used up.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "continuous/continuous_priv.h"
#include "find/process.h"

#define TURN_NS	 3000000ull /* for looking at candidates, at a time */
#define PAUSE_US 20000u	    /* between turns, if candidates are left */
#define DEBT_US	 1000000u   /* while the budget is used up */
/* Reports are read at most so often: a burst of processes wakes the daemon once. */
#define REPORTS_US 250000u
#define AGAIN_NS   (60 * UINT64_C(1000000000))
#define SCAN_US	   (600 * UINT64_C(1000000))

static void look_at(struct continuous *c, uint64_t us)
{
	(void)sd_event_source_set_time_relative(c->look, us);
	(void)sd_event_source_set_enabled(c->look, SD_EVENT_ONESHOT);
}

/* Whoever asks for more than light targets pays for it. */
static bool may_attach(const struct continuous *c)
{
	return !c->opts.target.light || budget_allows(&c->budget);
}

/* Look again when the next candidate is old enough. */
void discover_soon(struct continuous *c)
{
	uint64_t due = candidates_due(&c->candidates, CONTINUOUS_AGE_NS), now;

	if (due == CANDIDATES_LAST || c->attaching == DISCOVER_AT_ONCE)
		return;
	now = clock_monotonic_ns();
	if (!may_attach(c))
		look_at(c, DEBT_US);
	else
		look_at(c, due > now ? (due - now) / 1000 : PAUSE_US);
}

/* ---- attaching ---- */

static void refuse(struct continuous *c, pid_t pid, const char *why)
{
	log_debug("process %d is not sampled: %s", (int)pid, why);
	snprintf(c->counts.refusal, sizeof(c->counts.refusal), "%d: %.200s", (int)pid, why);
	c->counts.refused++;
}

/* On an overloaded machine, looking at a process can take too long: that is tried again later. */
static void refuse_member(struct continuous *c, struct member *m, int r, const char *why)
{
	struct candidate again = {.pid = m->pid, .since_ns = clock_monotonic_ns() + AGAIN_NS};

	refuse(c, m->pid, why);
	member_remove(c, m);
	if (r == -ETIMEDOUT)
		candidates_add(&c->candidates, &again);
}

/* One more step. Returns false if m was removed. */
static bool attach(struct continuous *c, struct member *m)
{
	struct diag diag = {0};
	int r = sessions_look(c->sessions, m->pid, &c->opts.target, m->asked_ns, &diag);

	if (r == -EINPROGRESS)
		return true;
	if (r == 0)
		r = sessions_attach(c->sessions, m->pid, true, &c->opts.target, &diag);
	if (r < 0) {
		refuse_member(c, m, r, diag.msg);
		return false;
	}
	m->asked_ns = 0;
	c->attaching--;
	c->counts.attached++;
	return true;
}

static void attach_all(struct continuous *c)
{
	for (size_t i = 0; i < c->n;)
		if (!c->v[i]->asked_ns || attach(c, c->v[i]))
			i++;
	discover_soon(c);
}

static int on_looked(sd_event_source *source, void *ctx)
{
	const uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct continuous *c = ctx;

	(void)source;
	attach_all(c);
	c->looking_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	return 0;
}

static void looked(void *ctx)
{
	struct continuous *c = ctx;

	(void)sd_event_source_set_enabled(c->looked, SD_EVENT_ONESHOT);
}

static void adopt(struct continuous *c, const struct process *p)
{
	struct member *m;

	if (c->n >= CONTINUOUS_PROCESSES_MAX) {
		c->counts.over_limit++;
		return;
	}
	m = member_add(c, p->pid);
	if (!m)
		return;
	service_name(&p->place, p->command, m->service);
	m->asked_ns = clock_monotonic_ns();
	c->attaching++;
	(void)attach(c, m);
}

/* ---- candidates ---- */

/* It is none of ours: report nothing more about it, and about its file if that is never. */
static void dismiss(struct continuous *c, const struct candidate *who, int why)
{
	arrivals_forget(c->arrivals, who->pid);
	/* Its end is reported up to REPORTS_US later than it can be seen. */
	if (why == -ESRCH)
		candidates_gone(&c->candidates, who);
	else if (why != -ENOENT && why != -EACCES)
		refuse(c, who->pid, strerror(-why));
	if (why != -ENOENT)
		return;
	c->counts.not_python++;
	if (foreign_seen(&c->foreign, &who->file))
		arrivals_ignore(c->arrivals, &who->file);
}

static void judge(struct continuous *c, const struct candidate *who)
{
	struct process p = {0};
	int r;

	if (member_find(c, who->pid))
		return;
	r = process_read(who->pid, &p);
	if (r < 0) {
		dismiss(c, who, r);
		return;
	}
	if (p.implementation != IMPLEMENTATION_CPYTHON ||
	    !filter_admits(c->filter, p.command, p.place.unit)) {
		c->counts.left_out++;
		arrivals_forget(c->arrivals, who->pid);
	} else {
		adopt(c, &p);
	}
	process_deinit(&p);
}

static int on_look(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct continuous *c = ctx;
	const uint64_t begin = clock_monotonic_ns(), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t now = begin;
	struct candidate who;

	(void)source, (void)usec;
	budget_update(&c->budget, now, continuous_cpu_ns(c), continuous_sampling_ns(c));
	while (now - begin < TURN_NS && c->attaching < DISCOVER_AT_ONCE && may_attach(c) &&
	       candidates_take(&c->candidates, now, CONTINUOUS_AGE_NS, &who)) {
		judge(c, &who);
		now = clock_monotonic_ns();
	}
	c->looking_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	discover_soon(c);
	return 0;
}

/* ---- reports ---- */

static void add(struct continuous *c, pid_t pid, uint64_t since_ns,
		const struct pyp_arrival_file *file)
{
	struct candidate new = {.pid = pid, .since_ns = since_ns};

	if (file)
		new.file = *file;
	if (pid != getpid())
		candidates_add(&c->candidates, &new);
}

/* A member that executes a program is another process from then on. */
static void executed(struct continuous *c, const struct pyp_arrival *r)
{
	struct member *m = member_find(c, (pid_t)r->pid);

	if (m)
		member_leave(c, m);
	add(c, (pid_t)r->pid, r->ts, &r->file);
}

static void on_report(void *ctx, const struct pyp_arrival *r)
{
	struct continuous *c = ctx;

	switch (r->type) {
	case PYP_ARRIVAL_EXEC:
		executed(c, r);
		break;
	case PYP_ARRIVAL_FORK:
		add(c, (pid_t)r->pid, r->ts, NULL);
		break;
	case PYP_ARRIVAL_EXIT:
		/* The end of a member is reported by its session. */
		(void)candidates_remove(&c->candidates, (pid_t)r->pid, true);
		break;
	}
}

static void scan(struct continuous *c);

static int on_reports(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct continuous *c = ctx;

	(void)source, (void)fd, (void)revents;
	(void)arrivals_read(c->arrivals, on_report, c);
	if (arrivals_lost(c->arrivals) != c->lost)
		scan(c);
	discover_soon(c);
	return 0;
}

/* ---- scans ---- */

/* Every process is watched before it is looked at, so that no fork of it is missed meanwhile. */
static void scan(struct continuous *c)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	pid_t pid;

	c->lost = arrivals_lost(c->arrivals);
	c->counts.scans++;
	while (d && (e = readdir(d))) {
		if (parse_pid(e->d_name, &pid) < 0 || member_find(c, pid))
			continue;
		arrivals_watch(c->arrivals, pid);
		/* old enough: nothing is known of its age */
		add(c, pid, 0, NULL);
	}
	if (d)
		closedir(d);
	discover_soon(c);
}

static int on_scan(sd_event_source *source, uint64_t usec, void *ctx)
{
	(void)usec;
	scan(ctx);
	(void)sd_event_source_set_time_relative(source, SCAN_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- begin and end ---- */

static int add_sources(struct continuous *c)
{
	int r = sd_event_add_io(c->event, &c->reports, arrivals_fd(c->arrivals), EPOLLIN,
				on_reports, c);

	if (r >= 0)
		r = sd_event_source_set_ratelimit(c->reports, REPORTS_US, 1);
	if (r >= 0)
		r = sd_event_add_time_relative(c->event, &c->look, CLOCK_MONOTONIC, 0, 50000,
					       on_look, c);
	if (r >= 0)
		r = sd_event_add_time_relative(c->event, &c->scan, CLOCK_MONOTONIC, 0, 1000,
					       on_scan, c);
	if (r >= 0)
		r = sd_event_add_defer(c->event, &c->looked, on_looked, c);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->looked, SD_EVENT_OFF);
	return r;
}

int discover_begin(struct continuous *c, struct diag *diag)
{
	int r = arrivals_open(&c->arrivals, diag);

	if (r < 0)
		return r;
	r = add_sources(c);
	if (r < 0)
		return diag_errno(diag, -r, "cannot set up the event loop");
	c->listener = (struct sessions_listener){.looked = looked, .ctx = c};
	sessions_listen(c->sessions, &c->listener);
	return 0;
}

void discover_end(struct continuous *c)
{
	if (c->listener.looked)
		sessions_unlisten(c->sessions, &c->listener);
	sd_event_source_disable_unref(c->reports);
	sd_event_source_disable_unref(c->look);
	sd_event_source_disable_unref(c->looked);
	sd_event_source_disable_unref(c->scan);
	arrivals_free(c->arrivals);
	candidates_deinit(&c->candidates);
}
