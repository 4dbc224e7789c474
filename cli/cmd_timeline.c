// SPDX-License-Identifier: BSD-2-Clause
/*
 * timeline: write each call and return with its time to a file. The daemon buffers events; this
 * process fetches them in pieces and writes the file. Events that arrive too fast are dropped from
 * the file, marked and counted there, but not from the profile.
 *
 * With --keep or --trigger the daemon keeps the recent past only, and this process waits until the
 * trigger's condition is met.
 */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/outfile.h"
#include "format/format.h"
#include "pyprof/version.h"
#include "render.h"
#include "timeline/timeline.h"
#include "timeline/writer.h"
#include "visit.h"

#define IDLE_NS	    (10 * 1000 * 1000) /* between requests while there is little data */
#define PROGRESS_NS (250 * 1000 * 1000)
#define LITTLE	    (64 * 1024)
#define WAIT_NS	    (100 * 1000 * 1000) /* between requests while waiting for a trigger */
/* Records of the recent past become longer as text; the daemon limits their number. */
#define RECENT_SIZES 16
#define SIZE_DEFAULT (UINT64_C(256) << 20)
#define NUMBER_SIZE  32

struct timeline_cmd {
	pid_t pid;
	uint64_t duration_ns, max_size, keep_ns, buffer;
	int format; /* index; 0: not given */
	const char *output, *trigger;
	bool yes;
};

/* "" stands for "not given" */
static const char *const timeline_formats[] = {"", "chrome", "csv", NULL};

#define FIELD(f) .offset = offsetof(struct timeline_cmd, f)

static const struct opt timeline_opts[] = {
	{"pid", 'p', OPT_PID, FIELD(pid), "PID",
	 "this process, attached temporarily if needed\n(default: all targets)"},
	{"duration", 'd', OPT_DURATION, FIELD(duration_ns), "SECONDS",
	 "for this duration (also 250ms, 2m); without it until\nCtrl-C or until the program ends"},
	{"format", 'f', OPT_CHOICE, FIELD(format), "chrome|csv",
	 "output format; default: from the extension of FILE\n(.json, .csv), otherwise csv",
	 .choices = timeline_formats},
	{"output", 'o', OPT_STRING, FIELD(output), "FILE", "output file (default: stdout)"},
	{"max-size", 0, OPT_SIZE, FIELD(max_size), "BYTES",
	 "stop when the file reaches this size (default: 256M)", .min = TIMELINE_SIZE_MIN},
	{"trigger", 0, OPT_STRING, FIELD(trigger), "CONDITION",
	 "keep only the recent past, and write it when the\ncondition is met: "
	 "slow:[PATTERN:]DURATION,\nraise:PATTERN or cpu:PERCENT%"},
	{"keep", 0, OPT_DURATION, FIELD(keep_ns), "SECONDS",
	 "keep only this much of the past (default with\n--trigger: 10)"},
	{"buffer", 0, OPT_SIZE, FIELD(buffer), "BYTES",
	 "the daemon's memory for what is kept, 64K to 1G\n(default: 64M)",
	 .min = TIMELINE_BUFFER_MIN, .max = TIMELINE_BUFFER_MAX},
	{"yes", 'y', OPT_FLAG, FIELD(yes), NULL, "consent to a high overhead: do not ask"},
	{NULL},
};

struct capture {
	const struct timeline_cmd *o;
	struct visit visit;
	struct timeline_writer *writer;
	json_t *targets;
	char path[64]; /* of the timeline resource; "": none */
	uint64_t start_ns, progress_ns;
	bool quiet;
};

static void capture_deinit(struct capture *t)
{
	if (t->path[0])
		client_request(t->visit.client, "DELETE", t->path, NULL, NULL, NULL);
	json_decref(t->targets);
	timeline_writer_free(t->writer);
	visit_end(&t->visit);
}

static bool is_recent(const struct timeline_cmd *o)
{
	return o->trigger || o->keep_ns;
}

static const char *choose_format(const struct timeline_cmd *o)
{
	const char *f = NULL;

	if (o->format)
		return timeline_formats[o->format];
	if (o->output)
		f = timeline_format_of_file(o->output);
	return f ? f : "csv";
}

static int check_output(const struct timeline_cmd *o, struct diag *diag)
{
	const char *extension = o->output ? format_extension(o->output) : NULL;

	if (extension && !o->format && !timeline_format_of_file(o->output))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "use -f, or one of .json .csv",
				"no timeline has the extension '%s' of '%s'", extension, o->output);
	return o->output ? outfile_check(o->output, diag) : 0;
}

/* Before anything is attached. The daemon checks the condition again. */
static int check(const struct timeline_cmd *o, struct diag *diag)
{
	_cleanup_(trigger_freep) struct trigger *trigger = NULL;
	int r = check_output(o, diag);

	if (r == 0 && o->max_size && is_recent(o))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "--buffer limits what is kept",
				"--max-size would cut off the end, which --keep and --trigger are "
				"for");
	return r == 0 && o->trigger ? trigger_new(o->trigger, &trigger, diag) : r;
}

/* ---- the beginning ---- */

static void set_duration(json_t *body, const char *key, uint64_t ns)
{
	char text[NUMBER_SIZE];

	if (!ns)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 ".%09" PRIu64, ns / CLOCK_NS_PER_S,
		 ns % CLOCK_NS_PER_S);
	json_object_set_new(body, key, json_string(text));
}

static json_t *request_body(const struct timeline_cmd *o)
{
	json_t *body = o->trigger ? json_pack("{s:s}", "trigger", o->trigger) : json_object();
	char text[NUMBER_SIZE];

	if (!body)
		return NULL;
	if (o->pid)
		json_object_set_new(body, "pid", json_integer(o->pid));
	if (o->buffer) {
		snprintf(text, sizeof(text), "%" PRIu64, o->buffer);
		json_object_set_new(body, "buffer", json_string(text));
	}
	set_duration(body, "duration", o->duration_ns);
	set_duration(body, "keep", o->keep_ns);
	return body;
}

static int begin(struct capture *t, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *body = request_body(t->o), *answer = NULL;
	int r;

	if (!body)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "the condition is not UTF-8");
	r = client_request(t->visit.client, "POST", "/v1/timelines", body, &answer, diag);
	if (r < 0)
		return r;
	snprintf(t->path, sizeof(t->path), "/v1/timelines/%" JSON_INTEGER_FORMAT,
		 json_integer_value(json_object_get(answer, "id")));
	t->targets = json_incref(json_object_get(answer, "targets"));
	t->start_ns = clock_monotonic_ns();
	return visit_check_traced(t->targets, diag);
}

/* ---- fetching ---- */

static void show_progress(struct capture *t)
{
	const struct timeline_writer_counts c = timeline_writer_counts(t->writer);
	char passed[NUMBER_SIZE], all[NUMBER_SIZE] = "", calls[NUMBER_SIZE];
	uint64_t now = clock_monotonic_ns();

	if (t->quiet || now - t->progress_ns < PROGRESS_NS)
		return;
	t->progress_ns = now;
	render_duration(now - t->start_ns, passed, sizeof(passed));
	if (t->o->duration_ns)
		render_duration(t->o->duration_ns, all, sizeof(all));
	fprintf(stderr, "\rtimeline %s%s%s, ", passed, *all ? " of " : "", all);
	if (t->o->trigger && !c.calls)
		fprintf(stderr, "waiting for %s", t->o->trigger);
	else if (is_recent(t->o) && !c.calls)
		fputs("keeping the recent past", stderr);
	else
		fprintf(stderr, "%s calls", render_count(c.calls, 9, calls, sizeof(calls)));
	fputs("; Ctrl-C ends it \033[K", stderr);
	fflush(stderr);
}

static int end_timeline(struct capture *t, struct diag *diag)
{
	return client_request(t->visit.client, "DELETE", t->path, NULL, NULL, diag);
}

/* Fetch one piece; *ret_n is 0 if there was no data. */
static int fetch(struct capture *t, size_t *ret_n, struct diag *diag)
{
	_cleanup_free_ char *data = NULL;
	int r;

	r = client_fetch(t->visit.client, t->path, &data, ret_n, diag);
	return r < 0 ? r : timeline_writer_feed(t->writer, data ? data : "", *ret_n, diag);
}

/*
 * Fetch until the timeline ends. Ask the daemon to end it when the file is full or a signal
 * arrives; on a second signal stop immediately.
 */
static int fetch_all(struct capture *t, struct diag *diag)
{
	bool ending = false;
	int r = 0;

	while (r == 0 && !timeline_writer_ended(t->writer)) {
		bool asked = false;
		size_t n = 0;

		r = fetch(t, &n, diag);
		show_progress(t);
		if (r == 0 && !timeline_writer_ended(t->writer))
			asked = !visit_wait(ending || n >= LITTLE ? 0
					    : is_recent(t->o)	  ? WAIT_NS
								  : IDLE_NS);
		if (asked && ending)
			break;
		if (r < 0 || ending || (!asked && !timeline_writer_full(t->writer)))
			continue;
		ending = true;
		r = end_timeline(t, diag);
	}
	if (!t->quiet)
		fputs("\r\033[K", stderr);
	if (timeline_writer_ended(t->writer))
		t->path[0] = '\0';
	return r;
}

/* ---- the end ---- */

static json_t *provenance(const struct capture *t)
{
	struct utsname u = {0};

	uname(&u);
	return json_pack("{s:s, s:s, s:s, s:o}", "program", "pyprofctl " PYPROF_VERSION, "host",
			 u.nodename, "kernel", u.release, "targets",
			 visit_targets_now(&t->visit, t->targets));
}

/* Reports missing data on stderr; the file contains this information, too. */
static void report_losses(const struct capture *t)
{
	const struct timeline_writer_counts c = timeline_writer_counts(t->writer);

	if (timeline_writer_full(t->writer))
		fputs("pyprofctl: timeline reached --max-size\n", stderr);
	if (c.dropped)
		fprintf(stderr,
			"pyprofctl: %" PRIu64 " calls and returns are missing from the timeline: "
			"events arrived faster than they could be written\n",
			c.dropped);
	if (c.lost)
		fprintf(stderr, "pyprofctl: events were lost: the timeline has %" PRIu64 " gaps\n",
			c.lost);
	if (c.truncated)
		fprintf(stderr,
			"pyprofctl: %" PRIu64
			" calls are missing from the timeline: stacks are too "
			"deep\n",
			c.truncated);
}

/* How much of the past the file holds, and why it ended */
static void report_recent(const struct capture *t)
{
	const struct timeline_writer_counts c = timeline_writer_counts(t->writer);
	const char *what = timeline_writer_trigger(t->writer);
	char held[NUMBER_SIZE];

	if (!is_recent(t->o))
		return;
	render_duration(c.until_ns - c.from_ns, held, sizeof(held));
	if (what)
		fprintf(stderr, "pyprofctl: %s\n", what);
	fprintf(stderr,
		"pyprofctl: the file holds the last %s; %" PRIu64 " older calls and returns were "
		"discarded\n",
		held, c.older + c.beyond_size);
	if (c.beyond_size)
		fprintf(stderr,
			"pyprofctl: %" PRIu64
			" of them were discarded early because the buffer was "
			"full: a larger --buffer holds more\n",
			c.beyond_size);
	if (c.refused)
		fprintf(stderr,
			"pyprofctl: %" PRIu64 " calls were not watched: too many at a time\n",
			c.refused);
}

/* The end of the recent past is what matters: it must not be cut off. */
static uint64_t max_size(const struct timeline_cmd *o)
{
	if (is_recent(o))
		return RECENT_SIZES * (o->buffer ? o->buffer : TIMELINE_BUFFER_RECENT);
	return o->max_size ? o->max_size : SIZE_DEFAULT;
}

static int capture_into(struct capture *t, FILE *out, struct diag *diag)
{
	const struct timeline_writer_opts wo = {
		.format = choose_format(t->o),
		.max_bytes = max_size(t->o),
	};
	struct diag late = {0};
	int r, written;

	r = begin(t, diag);
	if (r == 0)
		r = timeline_writer_new(&wo, out, &t->writer, diag);
	if (r < 0)
		return r;
	r = fetch_all(t, &late);
	written = timeline_writer_finish(t->writer, provenance(t), diag);
	if (written < 0)
		return written;
	report_recent(t);
	report_losses(t);
	/* Keep the events fetched so far. */
	if (r < 0)
		log_error("the timeline is incomplete: %s", late.msg);
	return 0;
}

/* The file is written. */
static int check_trigger(const struct capture *t, struct diag *diag)
{
	if (!t->o->trigger || timeline_writer_trigger(t->writer))
		return 0;
	return diag_set(diag, -ETIMEDOUT, PYP_EXIT_FAILURE, "the file is written and holds the end",
			"the trigger's condition was not met: %s", t->o->trigger);
}

static int run_timeline(const struct cmd_call *call, struct diag *diag)
{
	const struct timeline_cmd *o = call->opts;
	_cleanup_(capture_deinit) struct capture t = {.o = o, .quiet = !isatty(STDERR_FILENO)};
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	int r;

	r = check(o, diag);
	if (r < 0)
		return r;
	visit_block_signals();
	r = visit_recorded(&t.visit, call->socket, o->pid, o->yes, diag);
	if (r == 0 && o->output)
		r = outfile_open(o->output, &of, diag);
	if (r == 0)
		r = capture_into(&t, of ? outfile_stream(of) : call->out, diag);
	if (r == 0 && of)
		r = outfile_commit(of, diag);
	return r < 0 ? r : check_trigger(&t, diag);
}

const struct cmd cmd_timeline = {
	.name = "timeline",
	.summary = "Write each call and return with its time",
	.opts = timeline_opts,
	.opts_size = sizeof(struct timeline_cmd),
	.run = run_timeline,
};
