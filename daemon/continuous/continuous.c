// SPDX-License-Identifier: BSD-2-Clause
/*
 * Continuous mode: see continuous.h. Cuts are aligned to the wall clock, so that those of several
 * machines compare. One that is due cuts some members at a time, and the event loop serves others in
 * between.
 */
#include "continuous/continuous.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "base/clock.h"
#include "base/cost.h"
#include "base/log.h"
#include "continuous/continuous_priv.h"

#define CUT_TURN_NS  2000000ull
#define CUT_PAUSE_US 2000u

/* ---- cost ---- */

static uint64_t ns_of(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000000000u + (uint64_t)tv->tv_usec * 1000u;
}

/* Those that it samples are members. */
static bool observes_others(const struct continuous *c)
{
	return sessions_count(c->sessions) > c->n - c->attaching;
}

/*
 * The daemon, its helpers that have ended, and the samples in other processes. Merging on disk is not part of it:
 * it has a limit of its own (merger.h), and no process should have to wait for it.
 */
uint64_t continuous_cpu_ns(struct continuous *c)
{
	struct rusage u;
	uint64_t ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + c->counts.samples * COST_SAMPLE_NS -
		      writer_counts(c->writer).merger.cpu_ns;

	if (getrusage(RUSAGE_CHILDREN, &u) == 0)
		ns += ns_of(&u.ru_utime) + ns_of(&u.ru_stime);
	return budget_own(&c->budget, ns, continuous_sampling_ns(c) + c->looking_ns,
			  observes_others(c));
}

uint64_t continuous_sampling_ns(struct continuous *c)
{
	return c->counts.samples * COST_SAMPLE_NS + c->cut_ns + writer_counts(c->writer).cpu_ns;
}

static void keep_to_budget(struct continuous *c)
{
	if (!budget_update(&c->budget, clock_monotonic_ns(), continuous_cpu_ns(c),
			   continuous_sampling_ns(c)))
		return;
	sessions_set_skip(c->sessions, c->budget.skip);
	log_info("continuous mode used %.2f %% of a core: one in %u samples is taken",
		 100 * c->budget.used, c->budget.skip);
}

/* ---- cuts ---- */

static void set_cut(struct continuous *c, uint64_t usec)
{
	(void)sd_event_source_set_time(c->cut, usec);
	(void)sd_event_source_set_enabled(c->cut, SD_EVENT_ONESHOT);
}

/* The next multiple of the interval. */
static uint64_t next_boundary(const struct continuous *c, uint64_t now_ns)
{
	return (now_ns / c->opts.interval_ns + 1) * c->opts.interval_ns;
}

static void end_cut(struct continuous *c, uint64_t now_ns)
{
	const uint64_t next = next_boundary(c, c->cut_unix_ns);

	writer_end_cut(c->writer, c->cut_unix_ns);
	keep_expire(c->keep, now_ns);
	keep_to_budget(c);
	c->cut_unix_ns = next;
	if (now_ns >= next) {
		/* late, or the clock was set */
		c->counts.late += (now_ns - next) / c->opts.interval_ns + 1;
		c->cut_unix_ns = next_boundary(c, now_ns);
	} else if (next - now_ns > c->opts.interval_ns) {
		c->cut_unix_ns = next_boundary(c, now_ns);
	}
	set_cut(c, c->cut_unix_ns / 1000);
}

void continuous_cut(struct continuous *c, pid_t pid)
{
	for (size_t i = 0; i < c->n; i++)
		if (!pid || c->v[i]->pid == pid)
			member_cut(c, c->v[i]);
}

static int on_cut(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct continuous *c = ctx;
	const uint64_t begin = clock_monotonic_ns(), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	(void)source, (void)usec;
	if (c->next_cut == c->n)
		c->next_cut = 0;
	while (c->next_cut < c->n && clock_monotonic_ns() - begin < CUT_TURN_NS)
		member_cut(c, c->v[c->next_cut++]);
	c->cut_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	if (c->next_cut < c->n)
		set_cut(c, clock_unix_ns() / 1000 + CUT_PAUSE_US);
	else
		end_cut(c, clock_unix_ns());
	return 0;
}

/* ---- ends ---- */

void continuous_ended(struct continuous *c, pid_t pid)
{
	struct member *m = member_find(c, pid);

	if (!m)
		return;
	m->ended = true;
	(void)sd_event_source_set_enabled(c->ends, SD_EVENT_ONESHOT);
}

static int on_ends(sd_event_source *source, void *ctx)
{
	struct continuous *c = ctx;

	(void)source;
	for (size_t i = 0; i < c->n;)
		if (c->v[i]->ended)
			member_leave(c, c->v[i]);
		else
			i++;
	return 0;
}

/* ---- finished intervals ---- */

static void on_done(void *ctx, struct interval *iv, struct kept *kept)
{
	struct continuous *c = ctx;

	c->counts.intervals++;
	interval_deliver(c->sinks, iv);
	if (kept && keep_add(c->keep, kept) < 0)
		log_warning("an interval is not kept: %s", strerror(ENOMEM));
	interval_free(iv);
}

void continuous_add_sink(struct continuous *c, struct interval_sink *sink)
{
	sink->next = c->sinks;
	c->sinks = sink;
}

const struct keep *continuous_kept(const struct continuous *c)
{
	return c->keep;
}

/* ---- options ---- */

static int check_label(const char *text, struct diag *diag)
{
	const uint8_t id[INTERVAL_ID_BYTES] = {0};
	struct interval *iv = interval_new(id, 0, 0, snapshot_new());
	const char *equals = strchr(text, '=');
	char name[INTERVAL_LABEL_NAME_MAX + 2];
	int r = equals && iv ? 0 : -EINVAL;

	if (r == 0) {
		snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
		r = interval_set_label(iv, name, equals + 1);
	}
	interval_free(iv);
	if (r == 0)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"expected NAME=VALUE; names have lower-case letters, digits and _",
			"--label: '%.100s' is not valid", text);
}

int continuous_check(const struct continuous_opts *opts, struct diag *diag)
{
	_cleanup_(filter_freep) struct filter *f = NULL;
	int r = filter_new(opts->match, opts->unit, &f, diag);

	for (size_t i = 0; r == 0 && i < opts->labels->n; i++)
		r = check_label(opts->labels->v[i], diag);
	return r;
}

/* ---- begin and end ---- */

static int open_writer(struct continuous *c, struct diag *diag)
{
	const struct merger_opts merging = {.after_ns = c->opts.merge_after_ns,
					    .to_s = (uint32_t)(c->opts.merge_to_ns / 1000000000u)};
	struct disk *disk = NULL;
	int r = c->opts.dir ? disk_open(c->opts.dir, c->opts.disk_bytes, &disk, diag) : 0;

	return r < 0 ? r
		     : writer_new(c->event, disk, merging.to_s ? &merging : NULL, on_done, c,
				  &c->writer, diag);
}

static int add_sources(struct continuous *c, struct diag *diag)
{
	int r = sd_event_add_defer(c->event, &c->ends, on_ends, c);

	if (r >= 0)
		r = sd_event_source_set_enabled(c->ends, SD_EVENT_OFF);
	c->cut_unix_ns = next_boundary(c, clock_unix_ns());
	if (r >= 0)
		r = sd_event_add_time(c->event, &c->cut, CLOCK_REALTIME, c->cut_unix_ns / 1000,
				      1000, on_cut, c);
	return r < 0 ? diag_errno(diag, -r, "cannot set up the event loop") : 0;
}

static void set_host(struct continuous *c)
{
	struct utsname u;

	if (uname(&u) == 0)
		snprintf(c->host, sizeof(c->host), "%s", u.nodename);
}

int continuous_new(struct sd_event *event, struct sessions *ss, const struct continuous_opts *opts,
		   struct continuous **ret, struct diag *diag)
{
	_cleanup_(continuous_freep) struct continuous *c = calloc(1, sizeof(*c));
	int r;

	if (!c || keep_new(opts->memory_bytes, CONTINUOUS_MEMORY_AGE_NS, &c->keep) < 0)
		return diag_errno(diag, ENOMEM, "cannot start continuous mode");
	c->event = event;
	c->sessions = ss;
	c->opts = *opts;
	set_host(c);
	r = filter_new(opts->match, opts->unit, &c->filter, diag);
	if (r == 0)
		r = open_writer(c, diag);
	if (r == 0)
		r = add_sources(c, diag);
	if (r == 0)
		r = discover_begin(c, diag);
	if (r < 0)
		return r;
	budget_init(&c->budget, BUDGET_SHARE, clock_monotonic_ns(), continuous_cpu_ns(c));
	*ret = TAKE_PTR(c);
	return 0;
}

void continuous_free(struct continuous *c)
{
	if (!c)
		return;
	discover_end(c);
	while (c->n)
		member_leave(c, c->v[c->n - 1]);
	if (c->writer)
		writer_end_cut(c->writer, clock_unix_ns());
	writer_free(c->writer);
	sd_event_source_disable_unref(c->cut);
	sd_event_source_disable_unref(c->ends);
	keep_free(c->keep);
	filter_free(c->filter);
	free(c->v);
	free(c);
}
