// SPDX-License-Identifier: BSD-2-Clause
/* record: attach, wait, write the profile, detach. run: the same for a new process. */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "format/format.h"
#include "format/overhead.h"
#include "pick.h"
#include "query.h"
#include "render.h"
#include "target_args.h"
#include "visit.h"

#define STEP_NS	    (250 * 1000 * 1000)
#define NS_PER_S    UINT64_C(1000000000)
#define NUMBER_SIZE 32

struct record_opts {
	struct query query;
	struct opt_words words; /* pids and names */
	struct pick_opts pick;
	struct target_opts_given target;
	uint64_t duration_ns; /* 0: until a signal or the target's end */
	bool yes;
};

#define FIELD(f) .offset = offsetof(struct record_opts, f)

/* clang-format off: some rows are macros */
static const struct opt record_opts[] = {
	{"pid", 'p', OPT_WORDS, FIELD(words), "PID|NAME", "process to record; may be repeated"},
	PICK_OPTS(struct record_opts, pick),
	{"duration", 'd', OPT_DURATION, FIELD(duration_ns), "SECONDS",
	 "for this duration (also 250ms, 2m); without it until\nCtrl-C or until the last process "
	 "ends"},
	QUERY_OPT_FORMAT,
	{"output", 'o', OPT_STRING, FIELD(query.output), "FILE", "output file (default: stdout)"},
	{"clock", 0, OPT_CHOICE, FIELD(query.clock), "cpu|wall", "clock to report",
	 .choices = query_clocks},
	{"sort", 's', OPT_STRING, FIELD(query.sort), "KEY[,KEY]", "sort keys, as in pstats"},
	{"reverse", 'r', OPT_FLAG, FIELD(query.reverse), NULL, "reverse the sort order"},
	{"strip-dirs", 0, OPT_FLAG, FIELD(query.strip_dirs), NULL,
	 "file names without directories"},
	{"only-my-code", 0, OPT_FLAG, FIELD(query.only_my_code), NULL,
	 "fold the standard library and installed packages\ninto their callers"},
	{"builtins-of", 0, OPT_STRING, FIELD(query.builtins_of), "PATTERN",
	 "rows only for C functions that match, the others\nfolded into their callers"},
	{"raw-times", 0, OPT_FLAG, FIELD(query.raw_times), NULL,
	 "do not subtract the probes' own time"},
	QUERY_OPT_VERBOSE,
	{"limit", 'l', OPT_U64, FIELD(query.limit), "N",
	 "at most N rows (default: 30 on a terminal, all in\nfiles and pipes)", .min = 1,
	 .max = INT32_MAX},
	{"yes", 'y', OPT_FLAG, FIELD(yes), NULL, "consent to a high overhead: do not ask"},
	{NULL},
};
/* clang-format on */

static const struct opt run_opts[] = {
	{"duration", 'd', OPT_DURATION, FIELD(duration_ns), "SECONDS", "end after this time"},
	QUERY_OPT_FORMAT,
	{"output", 'o', OPT_STRING, FIELD(query.output), "FILE", "output file (default: stdout)"},
	{"clock", 0, OPT_CHOICE, FIELD(query.clock), "cpu|wall", "clock to report",
	 .choices = query_clocks},
	{"sort", 's', OPT_STRING, FIELD(query.sort), "KEY[,KEY]", "sort keys, as in pstats"},
	QUERY_OPT_VERBOSE,
	{"limit", 'l', OPT_U64, FIELD(query.limit), "N",
	 "at most N rows (default: 30 on a terminal, all in\nfiles and pipes)", .min = 1,
	 .max = INT32_MAX},
	{"yes", 'y', OPT_FLAG, FIELD(yes), NULL,
	 "as with record; without effect: a program that has\nnot started has no forecast"},
	{NULL},
};

/* Check options before anything is traced. */
static int check(const struct query *q, char *const *patterns, int n, struct diag *diag)
{
	const struct format_opts fo = {.sort = q->sort,
				       .builtins_of = q->builtins_of,
				       .restrict_ = (const char *const *)patterns,
				       .nrestrict = (size_t)n};
	const struct format *unused;
	int r = format_choose(q->format, q->output, &unused, diag);

	if (r == 0)
		r = format_opts_check(&fo, diag);
	if (r == 0 && q->output)
		r = outfile_check(q->output, diag);
	return r;
}

/* ---- record ---- */

struct recording {
	const struct record_opts *o;
	char *const *patterns;
	int npatterns;
	struct visit visit;
	struct pick pick;
	struct opt_pids pids; /* those of pick that are attached */
	struct diag failed;   /* the first failure that left another process out; reported */
	bool quiet;
	bool own; /* record everything of a private daemon (several processes) */
	uint64_t start_ns;
};

static void recording_deinit(struct recording *r)
{
	visit_end(&r->visit);
}

struct attaching {
	struct visit *visit;
	const struct visit_how *how;
};

static int attach_pid(void *ctx, pid_t pid, struct diag *diag)
{
	const struct attaching *a = ctx;

	return visit_attach(a->visit, pid, a->how, diag);
}

/* If there are several, attach all before any is started. Those that fail are left out. */
static int attach(struct recording *r, struct diag *diag)
{
	const struct visit_how how = {.waiting = r->pick.n > 1,
				      .yes = r->o->yes,
				      .target = &r->o->target,
				      .picked = &r->pick};
	struct attaching a = {&r->visit, &how};
	int err = 0;

	for (size_t i = 0; i < r->pick.n; i++) {
		const struct picked *p = &r->pick.v[i];
		struct diag why = {0};

		if (pick_attach(p, r->visit.client, attach_pid, &a, &why) < 0)
			pick_report(&why, &r->failed);
		else
			r->pids.pid[r->pids.n++] = p->pid;
	}
	if (!r->pids.n) {
		*diag = r->failed;
		return diag->err;
	}
	if (how.waiting)
		err = visit_start(&r->visit, diag);
	r->start_ns = clock_monotonic_ns();
	return err;
}

/* Sums over all targets */
struct progress {
	uint64_t events, rate, lost;
	bool over;
};

static uint64_t count_of(const json_t *target, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(target, key));

	return v < 0 ? 0 : (uint64_t)v;
}

static int poll_targets(const struct recording *r, struct progress *ret, struct diag *diag)
{
	int err = 0;

	*ret = (struct progress){.over = true};
	for (size_t i = 0; err == 0 && i < r->pids.n; i++) {
		_cleanup_(json_decrefp) json_t *target = NULL;
		char path[64];

		snprintf(path, sizeof(path), "/v1/targets/%d", r->pids.pid[i]);
		err = client_request(r->visit.client, "GET", path, NULL, &target, diag);
		ret->events += count_of(target, "events");
		ret->rate += count_of(target, "events_per_s");
		ret->lost += count_of(target, "lost");
		ret->over &= json_is_true(json_object_get(target, "over"));
	}
	return err;
}

static void show_progress(const struct recording *r, const struct progress *p)
{
	char passed[NUMBER_SIZE], all[NUMBER_SIZE] = "", events[NUMBER_SIZE], rate[NUMBER_SIZE];

	if (r->quiet)
		return;
	render_duration(clock_monotonic_ns() - r->start_ns, passed, sizeof(passed));
	if (r->o->duration_ns)
		render_duration(r->o->duration_ns, all, sizeof(all));
	fprintf(stderr,
		"\rrecording %s%s%s, %s events, %s/s, %" PRIu64 " lost; Ctrl-C stops \033[K",
		passed, *all ? " of " : "", all, render_count(p->events, 9, events, sizeof(events)),
		render_count(p->rate, 6, rate, sizeof(rate)), p->lost);
	fflush(stderr);
}

/* Wait for the duration, a signal, or the end of the last target. */
static int watch(const struct recording *r, struct diag *diag)
{
	uint64_t end = r->o->duration_ns ? r->start_ns + r->o->duration_ns : UINT64_MAX;
	struct progress p;
	int err = 0;

	for (uint64_t now = r->start_ns; now < end; now = clock_monotonic_ns()) {
		err = poll_targets(r, &p, diag);
		if (err < 0)
			break;
		show_progress(r, &p);
		if (p.over || !visit_wait(end - now < STEP_NS ? end - now : STEP_NS))
			break;
	}
	if (!r->quiet)
		fputs("\r\033[K", stderr);
	return err;
}

/* What it cost the processes that were recorded; they are stopped. */
static void say_overhead(const struct recording *r)
{
	_cleanup_(json_decrefp) json_t *status = NULL;
	char path[64] = "/v1/status", text[OVERHEAD_TEXT];

	if (!r->own)
		snprintf(path, sizeof(path), "/v1/targets/%d", r->pids.pid[0]);
	if (client_request(r->visit.client, "GET", path, NULL, &status, NULL) == 0 &&
	    overhead_text(count_of(status, "overhead_ns"), count_of(status, "own_cpu_ns"),
			  r->pids.n > 1, text))
		fprintf(stderr, "overhead: %s\n", text);
}

/* The private daemon ends with this process, so save the whole recording as JSON. */
static void save_fallback(const struct recording *r, const struct query *q, struct diag *diag)
{
	const struct query all = {.pid = q->pid, .raw_times = q->raw_times};
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	_cleanup_free_ char *path = NULL, *name = NULL;
	int err;

	path = query_path(r->visit.client, &all, "json", NULL, 0, NULL);
	err = path ? outfile_open_fallback("pyprofctl-recording", &of, NULL) : -ENOMEM;
	if (err == 0)
		err = client_download(r->visit.client, path, outfile_stream(of), NULL);
	name = err == 0 ? strdup(outfile_path(of)) : NULL;
	if (err == 0)
		err = name ? outfile_commit(of, NULL) : -ENOMEM;
	if (err < 0)
		snprintf(diag->hint, sizeof(diag->hint),
			 "the recording is lost; free some disk space");
	else
		snprintf(diag->hint, sizeof(diag->hint),
			 "the recording is in '%.120s'; `pyprofctl report` converts "
			 "it",
			 name);
}

static int save(const struct recording *r, FILE *out, struct diag *diag)
{
	struct query query = r->o->query, *q = &query;
	_cleanup_(json_decrefp) json_t *body = json_object();
	_cleanup_free_ char *path = NULL;
	int err;

	if (!r->own) {
		q->pid = r->pids.pid[0];
		json_object_set_new(body, "pid", json_integer(q->pid));
	}
	/* fails harmlessly for targets that have ended */
	client_request(r->visit.client, "POST", "/v1/stop", body, NULL, NULL);
	path = query_path(r->visit.client, q, query_format(q), r->patterns, r->npatterns,
			  q->output ? NULL : out);
	if (!path)
		return diag_errno(diag, ENOMEM, "cannot request the profile");
	err = q->output ? query_save(r->visit.client, path, q->output, diag)
			: client_download(r->visit.client, path, out, diag);
	if (err < 0 && r->visit.daemon.pid)
		save_fallback(r, q, diag);
	return err;
}

/* Check all that can be wrong before any process is traced, and find the processes. */
static int prepare(struct recording *r, struct diag *diag)
{
	const struct record_opts *o = r->o;
	int err = pick_check(&o->pick, o->words.n, diag);

	if (err == 0)
		err = check(&o->query, r->patterns, r->npatterns, diag);
	if (err == 0)
		err = target_args_check(&o->target, diag);
	if (err < 0)
		return err;
	pick_processes(&o->pick, o->words.v, o->words.n, o->target.opts.follow, &r->pick,
		       &r->failed);
	if (!r->pick.n)
		*diag = r->failed;
	r->own = o->target.opts.follow || r->pick.n > 1;
	return diag->err;
}

static int run_record(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(recording_deinit) struct recording r = {.o = call->opts,
							  .patterns = call->operands,
							  .npatterns = call->noperands,
							  .quiet = !isatty(STDERR_FILENO)};
	int err = prepare(&r, diag);

	if (err < 0)
		return err;
	visit_block_signals();
	err = r.own ? visit_open_own(&r.visit, diag) : visit_open(&r.visit, call->socket, diag);
	if (err == 0)
		err = attach(&r, diag);
	if (err == 0)
		err = watch(&r, diag);
	if (err == 0)
		err = save(&r, call->out, diag);
	if (err < 0)
		return err;
	say_overhead(&r);
	*diag = r.failed; /* the profile is written; others could not be recorded */
	return diag->err;
}

/* ---- run ---- */

/* pyprofd's arguments: options, then the command */
struct run_args {
	char **v; /* owned, as are the first noptions strings */
	size_t noptions;
	bool failed; /* out of memory */
};

static void run_args_deinit(struct run_args *a)
{
	for (size_t i = 0; i < a->noptions; i++)
		free(a->v[i]);
	free(a->v);
}

/* Add an option with its value; NULL: not given. */
static void add(struct run_args *a, const char *option, const char *value)
{
	if (!value)
		return;
	if (asprintf(&a->v[a->noptions], "--%s=%s", option, value) < 0)
		a->failed = true;
	else
		a->noptions++;
}

static void add_flag(struct run_args *a, const char *option)
{
	if (asprintf(&a->v[a->noptions], "--%s", option) < 0)
		a->failed = true;
	else
		a->noptions++;
}

static void add_target(struct run_args *a, const struct target_opts_given *g)
{
	char text[OPT_TEXT_MAX];

	for (const struct opt *row = target_opt_table; row->name; row++) {
		if (!target_opts_has(g, row->offset))
			continue;
		if (row->arg)
			add(a, row->name, opt_text(row, &g->opts, text));
		else
			add_flag(a, row->name);
	}
}

static void collect(struct run_args *a, const struct record_opts *o)
{
	const struct query *q = &o->query;
	char seconds[NUMBER_SIZE], limit[NUMBER_SIZE];

	snprintf(seconds, sizeof(seconds), "%" PRIu64 ".%09" PRIu64, o->duration_ns / NS_PER_S,
		 o->duration_ns % NS_PER_S);
	snprintf(limit, sizeof(limit), "%" PRIu64, q->limit);
	add(a, "format", query_format(q));
	add(a, "output", q->output);
	add(a, "clock", q->clock ? query_clocks[q->clock] : NULL);
	add(a, "sort", q->sort);
	add(a, "limit", q->limit ? limit : NULL);
	add(a, "duration", o->duration_ns ? seconds : NULL);
	add_flag(a, "command-status");
	if (q->verbose)
		add_flag(a, "verbose");
	if (o->yes)
		add_flag(a, "yes");
	add_target(a, &o->target);
}

/* pyprofd starts the program, ends with it and its status, and writes the profile. */
static int run_run(const struct cmd_call *call, struct diag *diag)
{
	const struct record_opts *o = call->opts;
	_cleanup_(private_end) struct private_daemon d = {0};
	_cleanup_(run_args_deinit) struct run_args args = {
		.v = calloc(OPTS_MAX + 2 + (size_t)call->noperands, sizeof(*args.v))};
	int r;

	r = check(&o->query, NULL, 0, diag);
	if (r == 0)
		r = target_args_check(&o->target, diag);
	if (r < 0)
		return r;
	if (args.v)
		collect(&args, o);
	if (!args.v || args.failed)
		return diag_errno(diag, ENOMEM, "cannot start the program");
	args.v[args.noptions] = (char *)"--";
	memcpy(args.v + args.noptions + 1, call->operands,
	       (size_t)call->noperands * sizeof(*args.v));
	r = private_start(&d, PRIVATE_FOREGROUND, args.v, diag);
	if (r < 0)
		return r;
	r = private_wait(&d);
	if (r == 0)
		return 0;
	/* that of the program, or pyprofd's, which has printed the reason */
	*diag = (struct diag){.err = -ECHILD, .exit = (enum pyp_exit)r};
	return -ECHILD;
}

const struct cmd cmd_record = {
	.name = "record",
	.operands = "[PATTERN]...",
	.summary = "Trace processes for a while and write their profile",
	.opts = record_opts,
	.opts_size = sizeof(struct record_opts),
	TARGET_ARGS(struct record_opts, target),
	.max_operands = CMD_ANY,
	.run = run_record,
};

const struct cmd cmd_run = {
	.name = "run",
	.operands = "-- COMMAND...",
	.summary = "Run a Python program and write its profile",
	.opts = run_opts,
	.opts_size = sizeof(struct record_opts),
	TARGET_ARGS(struct record_opts, target),
	.min_operands = 1,
	.max_operands = CMD_ANY,
	.run = run_run,
};
