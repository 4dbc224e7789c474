// SPDX-License-Identifier: BSD-2-Clause
/* A recording from within the live view: see top_record.h. */
#include "top_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/outfile.h"
#include "history.h"
#include "query.h"
#include "report.h"

#define MARK_SIZE 32

/* The daemon's name for the start: one for each live view */
static const char *mark(char name[MARK_SIZE])
{
	snprintf(name, MARK_SIZE, "top-%d", (int)getpid());
	return name;
}

/* For people, so in local time */
static void name_file(char *path, size_t size)
{
	time_t now = time(NULL);
	struct tm tm = {0};

	if (!localtime_r(&now, &tm) || !strftime(path, size, "top-%Y%m%d-%H%M%S.html", &tm))
		snprintf(path, size, "top.html");
}

/* The response may be large; only its request matters. */
static int request_start(const struct top_recording *r, struct client *c, struct diag *diag)
{
	char name[MARK_SIZE];
	const struct query q = {.pid = r->pid, .tid = r->tid, .limit = 1, .since = mark(name)};
	_cleanup_free_ char *path = query_path(c, &q, "csv", NULL, 0, NULL), *data = NULL;
	size_t n;

	if (!path)
		return diag_errno(diag, ENOMEM, "cannot start recording");
	return client_fetch(c, path, &data, &n, diag);
}

int top_record_start(struct top_recording *r, struct client *c, const char *output,
		     const struct top_recording *new, struct diag *diag)
{
	char path[sizeof(new->path)];
	int err;

	if (output && strlen(output) >= sizeof(path))
		return diag_errno(diag, ENAMETOOLONG, "cannot write the recording");
	if (output)
		snprintf(path, sizeof(path), "%s", output);
	else
		name_file(path, sizeof(path));
	err = outfile_check(path, diag);
	if (err == 0 && !new->socket)
		err = request_start(new, c, diag);
	if (err < 0)
		return err;
	*r = *new;
	memcpy(r->path, path, sizeof(path));
	r->start_ns = clock_monotonic_ns();
	return 0;
}

static int load_intervals(void *ctx, struct snapshot **ret, struct diag *diag)
{
	const struct top_recording *r = ctx;
	char condition[32];
	const char *where = condition;
	const struct history_of of = {
		.socket = r->socket,
		.span = {.from_ns = r->first_unix_ns, .to_ns = clock_unix_ns()},
		.where = &where,
		.nwhere = r->pid != 0,
	};

	snprintf(condition, sizeof(condition), "pid=^%d$", (int)r->pid);
	return history_sum(&of, "the recording", ret, diag);
}

static int write_intervals(struct top_recording *r, struct diag *diag)
{
	const struct cmd_call call = {.socket = r->socket};
	const struct query q = {.pid = r->pid, .tid = r->tid, .output = r->path};

	return report_run(&call, &q, 0, &(struct report_source){load_intervals, r}, diag);
}

int top_record_stop(struct top_recording *r, struct client *c, struct diag *diag)
{
	char name[MARK_SIZE];
	const struct query q = {
		.pid = r->pid, .tid = r->tid, .since = mark(name), .output = r->path};
	_cleanup_free_ char *path = query_path(c, &q, query_format(&q), NULL, 0, NULL);
	int err;

	if (r->socket)
		err = write_intervals(r, diag);
	else
		err = path ? query_save(c, path, r->path, diag)
			   : diag_errno(diag, ENOMEM, "cannot request the recording");
	r->path[0] = '\0';
	return err;
}
