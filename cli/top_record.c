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
#include "query.h"

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

int top_record_start(struct top_recording *r, struct client *c, const char *output, pid_t pid,
		     pid_t tid, struct diag *diag)
{
	struct top_recording new = {.pid = pid, .tid = tid};
	int err;

	if (output && strlen(output) >= sizeof(new.path))
		return diag_errno(diag, ENAMETOOLONG, "cannot write the recording");
	if (output)
		snprintf(new.path, sizeof(new.path), "%s", output);
	else
		name_file(new.path, sizeof(new.path));
	err = outfile_check(new.path, diag);
	if (err == 0)
		err = request_start(&new, c, diag);
	if (err < 0)
		return err;
	new.start_ns = clock_monotonic_ns();
	*r = new;
	return 0;
}

int top_record_stop(struct top_recording *r, struct client *c, struct diag *diag)
{
	char name[MARK_SIZE];
	const struct query q = {
		.pid = r->pid, .tid = r->tid, .since = mark(name), .output = r->path};
	_cleanup_free_ char *path = query_path(c, &q, query_format(&q), NULL, 0, NULL);
	int err = path ? query_save(c, path, r->path, diag)
		       : diag_errno(diag, ENOMEM, "cannot request the recording");

	r->path[0] = '\0';
	return err;
}
