// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sessions without processes: session.h with targets in memory, for tests of the layers above. A
 * test includes this file, so that the linker uses these functions instead of the archive's.
 *
 * Pids 1…999 are Python programs; 1001 does not exist, 1002 belongs to another user, 1003 is not a
 * Python; other pids do not exist. Each status adds 100 events.
 */
#include "session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define FAKE_MAX 64

struct sessions {
	struct session_opts opts;
	struct target_opts last; /* of the last attach */
	struct session_status st[FAKE_MAX];
	size_t n;
	unsigned int funcs; /* number of functions in snapshots besides main, which sets the size
			     * of answers */
	int stops, clears, snapshots;
	pid_t slow; /* attaching to this process never completes */
	uint64_t cancelled_ns;
	bool behind;	   /* its rings have unread events */
	uint32_t timeline; /* id of the timeline being recorded; 0: none */
	bool timeline_over, timeline_recent;
	struct slow_opts recorder; /* of the recorder with number 5; match NULL: none */
	char slow_match[64];
};

int sessions_new(struct sd_event *event, const struct session_opts *opts, struct sessions **ret,
		 struct diag *diag)
{
	struct sessions *ss = calloc(1, sizeof(*ss));

	(void)event, (void)diag;
	if (!ss)
		return -ENOMEM;
	if (opts)
		ss->opts = *opts;
	*ret = ss;
	return 0;
}

void sessions_free(struct sessions *ss)
{
	free(ss);
}

static struct session_status *fake_find(struct sessions *ss, pid_t pid)
{
	for (size_t i = 0; i < ss->n; i++)
		if (ss->st[i].pid == pid)
			return &ss->st[i];
	return NULL;
}

static int fake_missing(struct diag *diag, pid_t pid)
{
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "attach it first",
			"process %d is not attached", pid);
}

static int fake_refuse(pid_t pid, struct diag *diag)
{
	if (pid == 1002)
		return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION, "be root", "not yours");
	if (pid == 1003)
		return diag_set(diag, -ENOEXEC, PYP_EXIT_UNTRACEABLE, "", "no Python");
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "", "no process %d", pid);
}

int sessions_attach(struct sessions *ss, pid_t pid, bool start, const struct target_opts *opts,
		    struct diag *diag)
{
	struct session_status *st;

	if (!opts)
		opts = &ss->opts.target;
	ss->last = *opts;
	if (pid > 999)
		return fake_refuse(pid, diag);
	if (fake_find(ss, pid) || ss->n == FAKE_MAX)
		return diag_set(diag, -EBUSY, PYP_EXIT_BUSY, "", "process %d is attached", pid);
	st = &ss->st[ss->n++];
	*st = (struct session_status){.pid = pid,
				      .state = start ? SESSION_TRACING : SESSION_ATTACHED,
				      .follows = opts->follow,
				      .mode = opts->mode,
				      .cmdline = "python3 \"app\".py\n\\ \xff",
				      .python_version = "3.13.5",
				      .traced_ns = 1500000000,
				      .overhead = 0.5,
				      .overhead_ns = 300000000,
				      .own_cpu_ns = 1200000000,
				      .threads = 2,
				      .funcs = 3,
				      .nodes = 4};
	return 0;
}

int sessions_look(struct sessions *ss, pid_t pid, const struct target_opts *opts, uint64_t since_ns,
		  struct diag *diag)
{
	(void)opts;
	if (since_ns && since_ns <= ss->cancelled_ns)
		return diag_set(diag, -ECANCELED, PYP_EXIT_NO_PROCESS, "", "cancelled");
	return pid == ss->slow ? -EINPROGRESS : 0;
}

struct session_forecast sessions_forecast(const struct sessions *ss, pid_t pid,
					  const struct target_opts *opts)
{
	(void)ss, (void)opts;
	if (pid == 8)
		return (struct session_forecast){0};
	return (struct session_forecast){
		.forecast = {.measured = true,
			     .known = true,
			     .calls_per_s = 2e6,
			     .trace = 3.5,
			     .count = 1.75},
		.cost = 3.5,
		.name = "python\x1b",
	};
}

bool sessions_looked(const struct sessions *ss, pid_t pid)
{
	return pid != ss->slow;
}

void sessions_cancel_attaching(struct sessions *ss)
{
	if (!ss->slow)
		return;
	ss->cancelled_ns = clock_monotonic_ns();
	ss->slow = 0;
}

int sessions_cut(struct sessions *ss, pid_t pid, struct snapshot **last, struct snapshot **ret,
		 struct diag *diag)
{
	(void)last;
	if (!fake_find(ss, pid))
		return fake_missing(diag, pid);
	*ret = NULL;
	return 0;
}

void sessions_set_skip(struct sessions *ss, uint32_t one_in)
{
	(void)ss, (void)one_in;
}

bool sessions_attaching(const struct sessions *ss, size_t i, struct session_attaching *ret)
{
	if (i || !ss->slow)
		return false;
	*ret = (struct session_attaching){.pid = ss->slow, .step = "planning"};
	return true;
}

void sessions_listen(struct sessions *ss, struct sessions_listener *l)
{
	(void)ss, (void)l;
}

void sessions_unlisten(struct sessions *ss, struct sessions_listener *l)
{
	(void)ss, (void)l;
}

struct target_opts sessions_target_opts(const struct sessions *ss)
{
	return ss->opts.target;
}

int sessions_detach(struct sessions *ss, pid_t pid, struct diag *diag)
{
	struct session_status *st = fake_find(ss, pid);

	if (!st && pid == ss->slow) {
		sessions_cancel_attaching(ss);
		return 0;
	}
	if (!st)
		return fake_missing(diag, pid);
	memmove(st, st + 1, (size_t)(&ss->st[ss->n] - (st + 1)) * sizeof(*st));
	ss->n--;
	return 0;
}

static int fake_set_state(struct sessions *ss, pid_t pid, enum session_state state,
			  struct diag *diag)
{
	if (pid && !fake_find(ss, pid))
		return fake_missing(diag, pid);
	for (size_t i = 0; i < ss->n; i++)
		if (!pid || ss->st[i].pid == pid)
			ss->st[i].state = state;
	return 0;
}

/* 998 cannot be started. */
int sessions_start_each(struct sessions *ss, pid_t pid, sessions_failed_fn failed, void *ctx,
			struct diag *diag)
{
	if ((!pid || pid == 998) && fake_find(ss, 998)) {
		int r = diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "", "process 998 has gone");

		fake_set_state(ss, pid, SESSION_TRACING, NULL);
		failed(ctx, 998, r, diag);
		return r;
	}
	return fake_set_state(ss, pid, SESSION_TRACING, diag);
}

int sessions_stop(struct sessions *ss, pid_t pid, struct diag *diag)
{
	ss->stops++;
	return fake_set_state(ss, pid, SESSION_ATTACHED, diag);
}

void sessions_read_rings(struct sessions *ss)
{
	(void)ss;
}

int sessions_clear(struct sessions *ss, pid_t pid, struct diag *diag)
{
	if (pid && !fake_find(ss, pid))
		return fake_missing(diag, pid);
	ss->clears++;
	return 0;
}

static struct snapshot_target fake_target(struct snapshot *s, pid_t pid)
{
	return (struct snapshot_target){.pid = (uint32_t)pid,
					.cmdline = snapshot_str(s, "python3 app.py"),
					.exe = snapshot_str(s, "/opt/bin/python3"),
					.python_file = snapshot_str(s, "/opt/lib/libpython.so"),
					.python_version = snapshot_str(s, "3.13.5"),
					.build_id = snapshot_str(s, "0123456789abcdef"),
					.alive = true,
					.events = 2000};
}

/* A thread that calls n functions from its root. */
static void fake_calls(struct snapshot *s, uint32_t n)
{
	s->threads[0] = (struct snapshot_thread){
		.pid = s->targets[0].pid, .tid = 43, .name = "worker", .total = {1000, 2000}};
	s->nodes[0] = (struct snapshot_node){.parent = SNAPSHOT_NONE, .func = SNAPSHOT_NONE};
	for (uint32_t i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), i ? "f%u" : "main", i);
		s->funcs[i] = (struct snapshot_func){.filename = "app.py",
						     .name = snapshot_str(s, name),
						     .qualname = snapshot_str(s, name),
						     .firstlineno = 1 + (int32_t)i};
		s->nodes[i + 1] = (struct snapshot_node){.func = i,
							 .calls = 1,
							 .self = {1000, 2000},
							 .min = {1000, 2000},
							 .max = {1000, 2000}};
	}
	s->nthreads = s->ntargets = 1;
	s->nfuncs = n;
	s->nnodes = n + 1;
}

bool sessions_stopping(const struct sessions *ss, pid_t pid)
{
	(void)ss, (void)pid;
	return false;
}

bool sessions_current(const struct sessions *ss, pid_t pid, uint64_t since_ns)
{
	(void)pid, (void)since_ns;
	return !ss->behind;
}

bool sessions_catch_up(struct sessions *ss, pid_t pid, uint64_t since_ns, uint64_t until_ns)
{
	(void)until_ns;
	return sessions_current(ss, pid, since_ns);
}

int sessions_snapshot(struct sessions *ss, pid_t pid, struct snapshot **ret, struct diag *diag)
{
	uint32_t n = 1 + ss->funcs;
	struct snapshot *s;

	if (pid && !fake_find(ss, pid))
		return fake_missing(diag, pid);
	s = snapshot_new();
	if (!s)
		return -ENOMEM;
	s->host = s->kernel = s->program = snapshot_str(s, "test");
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	s->threads = snapshot_alloc(s, 1, sizeof(*s->threads));
	s->funcs = snapshot_alloc(s, n, sizeof(*s->funcs));
	s->nodes = snapshot_alloc(s, n + 1, sizeof(*s->nodes));
	s->targets[0] = fake_target(s, pid ? pid : 42);
	fake_calls(s, n);
	ss->snapshots++;
	*ret = s;
	return 0;
}

size_t sessions_count(const struct sessions *ss)
{
	return ss->n;
}

void sessions_status(struct sessions *ss, size_t i, struct session_status *ret)
{
	ss->st[i].events += 100;
	*ret = ss->st[i];
}

void sessions_overhead(const struct sessions *ss, uint64_t *ret_overhead_ns,
		       uint64_t *ret_own_cpu_ns)
{
	*ret_overhead_ns = *ret_own_cpu_ns = 0;
	for (size_t i = 0; i < ss->n; i++) {
		*ret_overhead_ns += ss->st[i].overhead_ns;
		*ret_own_cpu_ns += ss->st[i].own_cpu_ns;
	}
}

int sessions_status_pid(struct sessions *ss, pid_t pid, struct session_status *ret,
			struct diag *diag)
{
	struct session_status *st = fake_find(ss, pid);

	if (!st)
		return fake_missing(diag, pid);
	*ret = *st;
	return 0;
}

const char *session_state_name(enum session_state s)
{
	static const char *const names[] = {"attached", "tracing", "stopping", "ended"};

	return names[s];
}

int sessions_timeline_begin(struct sessions *ss, pid_t pid, const struct sessions_timeline *opts,
			    uint32_t *ret_id, struct diag *diag)
{
	if (pid && !fake_find(ss, pid))
		return fake_missing(diag, pid);
	ss->timeline_recent = opts->keep_ns > 0;
	if (ss->timeline)
		return diag_set(diag, -EBUSY, PYP_EXIT_BUSY, "", "one is being taken");
	*ret_id = ss->timeline = 7;
	ss->timeline_over = false;
	return 0;
}

static int fake_no_timeline(uint32_t id, struct diag *diag)
{
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "", "there is no timeline %u", id);
}

/* "more" until it is over, then "end". */
int sessions_timeline_read(struct sessions *ss, uint32_t id, char **ret_data, size_t *ret_n,
			   struct diag *diag)
{
	if (id != ss->timeline)
		return fake_no_timeline(id, diag);
	*ret_data = strdup(ss->timeline_over ? "end" : "more");
	*ret_n = strlen(*ret_data);
	if (ss->timeline_over)
		ss->timeline = 0;
	return 0;
}

int sessions_timeline_end(struct sessions *ss, uint32_t id, struct diag *diag)
{
	if (id != ss->timeline)
		return fake_no_timeline(id, diag);
	ss->timeline_over = true;
	return 0;
}

void sessions_timelines_end(struct sessions *ss)
{
	ss->timeline_over = true;
}

int sessions_slow_begin(struct sessions *ss, pid_t pid, const struct slow_opts *opts,
			uint32_t *ret_id, struct diag *diag)
{
	if (pid && !fake_find(ss, pid))
		return fake_missing(diag, pid);
	ss->recorder = *opts;
	snprintf(ss->slow_match, sizeof(ss->slow_match), "%s", opts->match ? opts->match : "own");
	ss->recorder.match = ss->slow_match;
	*ret_id = 5;
	return 0;
}

/* What it was begun with, and how much is asked for */
int sessions_slow_read(struct sessions *ss, uint32_t id, enum slow_detail detail, json_t **ret,
		       struct diag *diag)
{
	if (id != 5 || !ss->recorder.match)
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "", "there is no %u", id);
	*ret = json_pack("{s:s, s:I, s:i, s:i, s:i}", "match", ss->recorder.match, "over_ns",
			 (json_int_t)ss->recorder.over_ns, "n", (int)ss->recorder.n, "clock",
			 (int)ss->recorder.clock, "detail", (int)detail);
	return 0;
}

int sessions_slow_end(struct sessions *ss, uint32_t id, struct diag *diag)
{
	if (id != 5 || !ss->recorder.match)
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "", "there is no %u", id);
	ss->recorder.match = NULL;
	return 0;
}

bool sessions_timeline_status(struct sessions *ss, size_t i, struct sessions_timeline_status *ret)
{
	if (i || !ss->timeline)
		return false;
	*ret = (struct sessions_timeline_status){
		.id = ss->timeline, .waiting = 4, .recent = ss->timeline_recent};
	return true;
}
