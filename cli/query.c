// SPDX-License-Identifier: BSD-2-Clause
/* Requests for profiles: see query.h. */
#include "query.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/outfile.h"
#include "base/terminal.h"
#include "format/format.h"
#include "snapshot/load.h"

#define MARK_SIZE 64

const char *const query_clocks[] = {"", "cpu", "wall", NULL};

static char *add_number(struct client *c, char *path, const char *key, uint64_t v)
{
	char s[24];

	if (!v)
		return path;
	snprintf(s, sizeof(s), "%llu", (unsigned long long)v);
	return client_add_param(c, path, key, s);
}

static char *add_flag(struct client *c, char *path, const char *key, bool set)
{
	return set ? client_add_param(c, path, key, "true") : path;
}

static char *add_text(struct client *c, char *path, const char *key, const char *value)
{
	return value ? client_add_param(c, path, key, value) : path;
}

const char *query_format(const struct query *q)
{
	const struct format *f;

	if (q->format)
		return q->format;
	f = q->output ? format_of_file(q->output) : NULL;
	return f ? f->name : "text";
}

/* The user's name for the last snapshot, in a terminal one of its session. */
static const char *own_mark(char name[MARK_SIZE])
{
	int tty = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (tty < 0) {
		snprintf(name, MARK_SIZE, "user-%u", (unsigned int)getuid());
		return name;
	}
	close(tty);
	snprintf(name, MARK_SIZE, "user-%u-session-%d", (unsigned int)getuid(), (int)getsid(0));
	return name;
}

char *query_path(struct client *c, const struct query *q, const char *format, char *const *patterns,
		 int n, FILE *out)
{
	char *path = client_add_param(c, strdup("/v1/snapshot"), "format", format);
	char mark[MARK_SIZE];

	path = add_number(c, path, "pid", (uint64_t)q->pid);
	path = add_number(c, path, "tid", (uint64_t)q->tid);
	path = add_text(c, path, "clock", q->clock ? query_clocks[q->clock] : NULL);
	path = add_flag(c, path, "raw", q->raw_times);
	path = add_text(c, path, "sort", q->sort);
	path = add_flag(c, path, "reverse", q->reverse);
	path = add_flag(c, path, "strip_dirs", q->strip_dirs);
	path = add_flag(c, path, "only_my_code", q->only_my_code);
	path = add_text(c, path, "builtins_of", q->builtins_of);
	path = add_text(c, path, "columns", q->columns);
	path = add_number(c, path, "depth", q->depth);
	path = add_text(c, path, "min_share", q->min_share);
	path = add_flag(c, path, "verbose", q->verbose);
	path = add_flag(c, path, "by_thread", q->by_thread);
	path = add_flag(c, path, "busy", q->busy);
	path = add_text(c, path, "since",
			q->since	? q->since
			: q->since_last ? own_mark(mark)
					: NULL);
	if (out) {
		path = add_flag(c, path, "colour", query_colour(out));
		path = add_number(c, path, "width", (uint64_t)terminal_columns(out));
	}
	for (int i = 0; i < n; i++)
		path = client_add_param(c, path, "restrict", patterns[i]);
	return add_number(c, path, "limit", query_limit(q, format, out));
}

uint64_t query_limit(const struct query *q, const char *format, FILE *out)
{
	if (q->limit || !out || !terminal_is(out))
		return q->limit;
	return format_terminal_rows(format);
}

bool query_colour(FILE *out)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return terminal_is(out) && (!no || !*no) && term && *term && strcmp(term, "dumb") != 0;
}

static int kept(int err, struct diag *diag)
{
	snprintf(diag->hint, sizeof(diag->hint),
		 "the daemon keeps the data; choose another file with -o");
	return err;
}

int query_save(struct client *c, const char *path, const char *output, struct diag *diag)
{
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	int r;

	r = outfile_open(output, &of, diag);
	if (r < 0)
		return kept(r, diag);
	r = client_download(c, path, outfile_stream(of), diag);
	if (r < 0)
		return r;
	r = outfile_commit(of, diag);
	return r < 0 ? kept(r, diag) : 0;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

/* Forked processes belong to their parent's command. */
static bool is_unrelated(const json_t *a, const json_t *b)
{
	return !json_object_get(a, "forked_from") && !json_object_get(b, "forked_from") &&
	       strcmp(text_of(a, "cmdline"), text_of(b, "cmdline")) != 0;
}

/* Text reports state this themselves, and JSON keeps targets apart; other files only have the sum. */
static void warn_of_sum(struct client *c, const struct query *q, const char *format)
{
	const struct format *f = format_find(format);
	_cleanup_(json_decrefp) json_t *answer = NULL;
	const json_t *targets;
	size_t i, unrelated = 0;
	json_t *t;

	if (q->pid || q->tid || format_is_report(format) || (f && f->flags & FORMAT_OF_ALL) ||
	    client_request(c, "GET", "/v1/targets", NULL, &answer, NULL) < 0)
		return;
	targets = json_object_get(answer, "targets");
	json_array_foreach(targets, i, t) unrelated += is_unrelated(json_array_get(targets, 0), t);
	if (unrelated)
		fprintf(stderr,
			"pyprofctl: the %zu targets run different commands and are added up; --pid "
			"selects one\n",
			json_array_size(targets));
}

int query_run(const struct cmd_call *call, const struct query *q, const char *format,
	      struct diag *diag)
{
	_cleanup_(client_freep) struct client *c = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	r = client_open(call->socket, &c, diag);
	if (r < 0)
		return r;
	path = query_path(c, q, format, call->operands, call->noperands,
			  q->output ? NULL : call->out);
	if (!path)
		return diag_errno(diag, ENOMEM, "cannot request a snapshot");
	warn_of_sum(c, q, format);
	return q->output ? query_save(c, path, q->output, diag)
			 : client_download(c, path, call->out, diag);
}

int query_fetch(const struct cmd_call *call, pid_t pid, pid_t tid, struct snapshot **ret,
		struct diag *diag)
{
	const struct query q = {.pid = pid, .tid = tid};
	_cleanup_(client_freep) struct client *c = NULL;
	_cleanup_free_ char *path = NULL, *data = NULL;
	size_t n = 0;
	int r = client_open(call->socket, &c, diag);

	if (r < 0)
		return r;
	path = query_path(c, &q, "json", NULL, 0, NULL);
	if (!path)
		return diag_errno(diag, ENOMEM, "cannot request a snapshot");
	r = client_fetch(c, path, &data, &n, diag);
	return r < 0 ? r : snapshot_parse(data ? data : "", n, "the daemon's profile", ret, diag);
}
