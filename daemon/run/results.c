// SPDX-License-Identifier: BSD-2-Clause
/* The profile written at exit: see results.h. */
#include "run/results.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bounded.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/outfile.h"
#include "base/terminal.h"
#include "format/overhead.h"
#include "server/routes.h"
#include "accuracy/finish.h"

static bool to_stdout(const struct options *o)
{
	bool asked = o->format_name || isatty(STDOUT_FILENO);

	return !o->output && asked && (o->pids.n || o->cmd);
}

int results_check(const struct options *o, struct diag *diag)
{
	return o->output ? outfile_check(o->output, diag) : 0;
}

static int write_stream(const struct options *o, const struct format *format,
			const struct snapshot *s, FILE *out, struct diag *diag)
{
	uint64_t rows = o->limit || !terminal_is(out) ? o->limit
						      : format_terminal_rows(format->name);
	char limit[24];
	const char *const restricts[] = {limit};
	const struct format_opts fo = {.clock = (enum snapshot_clock)o->clock,
				       .sort = o->sort,
				       .verbose = o->verbose,
				       .width = (uint32_t)terminal_columns(out),
				       .restrict_ = restricts,
				       .nrestrict = rows ? 1 : 0};

	snprintf(limit, sizeof(limit), "%" PRIu64, rows);
	return format_write(format, s, &fo, out, diag);
}

/* Apply the control API's size limit, so that a target cannot fill the disk. */
static int write_bounded(const struct options *o, const struct snapshot *s, struct outfile *of,
			 struct diag *diag)
{
	struct bounded_room room = {.left = BODIES_MAX};
	FILE *f = bounded_open(fileno(outfile_stream(of)), &room);
	int r, closed;

	if (!f)
		return -ENOMEM;
	r = write_stream(o, o->format, s, f, diag);
	closed = fclose(f) == 0 ? 0 : -errno;
	if (!room.exceeded)
		return r < 0 ? r : closed;
	diag_clear(diag);
	return diag_set(diag, -EFBIG, PYP_EXIT_FAILURE, "", "the %s output is larger than %zu MiB",
			o->format->name, BODIES_MAX >> 20);
}

static int write_file(const struct options *o, const struct snapshot *s, struct diag *diag)
{
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	int r;

	r = outfile_open(o->output, &of, diag);
	if (r == 0)
		r = write_bounded(o, s, of, diag);
	if (r == 0)
		r = outfile_commit(of, diag);
	return r;
}

static int write_stdout(const struct options *o, const struct snapshot *s, struct diag *diag)
{
	FILE *out = isatty(STDOUT_FILENO) ? terminal_open(STDOUT_FILENO) : stdout;
	int r;

	if (!out)
		return -ENOMEM;
	r = write_stream(o, o->format, s, out, diag);
	errno = EIO;
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = diag_errno(diag, errno, "cannot write to standard output");
	if (out != stdout)
		fclose(out);
	/* the reader has closed the pipe (`| head`) */
	return r == -EPIPE ? 0 : r;
}

/*
 * Write to another file. diag has the error; its hint becomes the file's path. Uses the same
 * format, or, if that was too large, JSON, whose size is bounded by the tree's.
 */
static void write_fallback(const struct options *o, const struct snapshot *s, struct diag *diag)
{
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	struct diag second = {0};
	char path[160];
	int r;

	r = outfile_open_fallback("pyprofd-profile", &of, &second);
	if (r == 0)
		r = write_stream(o, diag->err == -EFBIG ? format_find("json") : o->format, s,
				 outfile_stream(of), &second);
	if (r == 0) {
		snprintf(path, sizeof(path), "%s", outfile_path(of));
		r = outfile_commit(of, &second);
	}
	if (r == 0)
		snprintf(diag->hint, sizeof(diag->hint), "the profile is in '%s'", path);
	else
		snprintf(diag->hint, sizeof(diag->hint), "writing elsewhere failed, too: %.200s",
			 second.err ? second.msg : strerror(-r));
}

/* What it cost the command, on stderr: its output may be the profile's. */
static void say_overhead(struct sessions *ss)
{
	char text[OVERHEAD_TEXT];
	uint64_t overhead, own;

	sessions_overhead(ss, &overhead, &own);
	if (overhead_text(overhead, own, sessions_count(ss) > 1, text))
		fprintf(stderr, "overhead: %s\n", text);
}

bool results_wanted(const struct sessions *ss, const struct options *o)
{
	return sessions_count(ss) && (o->output || to_stdout(o));
}

int results_write(struct sessions *ss, const struct options *o, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	int r;

	if (!results_wanted(ss, o))
		return 0;
	r = sessions_snapshot(ss, 0, &s, diag);
	if (r < 0)
		return r;
	if (snapshot_finish(s, o->raw_times) < 0)
		return diag_errno(diag, ENOMEM, "cannot write the profile");
	r = o->output ? write_file(o, s, diag) : write_stdout(o, s, diag);
	if (r < 0) {
		diag_set(diag, r, PYP_EXIT_FAILURE, "", "cannot write the profile: %s",
			 strerror(-r));
		write_fallback(o, s, diag);
	}
	if (o->cmd)
		say_overhead(ss);
	return r;
}
