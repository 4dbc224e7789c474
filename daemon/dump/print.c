// SPDX-License-Identifier: BSD-2-Clause
/* Prints dumps as text and as JSON: see dump.h. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "dump/dump.h"

static const char *state_text(char state)
{
	switch (state) {
	case 'R':
		return "running or waiting for a CPU";
	case 'S':
		return "sleeping";
	case 'D':
		return "waiting, not interruptible";
	case 'T':
	case 't':
		return "stopped";
	case 'Z':
	case 'X':
	case '?':
		return "ended";
	default:
		return "idle";
	}
}

static void print_head(const struct dump_thread *t, FILE *out)
{
	fprintf(out, "\nthread ");
	if (t->tid)
		fprintf(out, "%d \"%s\", %s", t->tid, t->name, state_text(t->state));
	else
		fprintf(out, "of unknown id");
	if (t->doing[0] && t->state != 'R')
		fprintf(out, " in %s", t->doing);
	fputc('\n', out);
}

static void print_frames(const struct dump_thread *t, FILE *out)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct dump_frame *f = &t->frames[i];

		fprintf(out, "  %c %s (%s", f->moving ? '~' : ' ', f->name, f->filename);
		if (f->line)
			fprintf(out, ":%d", f->line);
		fputs(")\n", out);
	}
	if (t->truncated)
		fputs("    ... outer frames are missing: too deep, or unreadable\n", out);
	if (!t->n && !t->truncated)
		fputs("    (runs no Python function)\n", out);
}

static size_t print_threads(const struct dump *d, FILE *out, bool *moving)
{
	size_t others = 0;

	for (size_t i = 0; i < d->nthreads; i++) {
		const struct dump_thread *t = &d->threads[i];

		others += !t->python;
		if (!t->python)
			continue;
		print_head(t, out);
		print_frames(t, out);
		for (size_t k = 0; k < t->n; k++)
			*moving |= t->frames[k].moving;
	}
	return others;
}

int dump_print_text(const struct dump *d, FILE *out)
{
	bool moving = false;
	size_t others;

	fprintf(out, "process %d: %s\nPython %s, %s\n", d->pid, d->cmdline, d->version, d->file);
	others = print_threads(d, out, &moving);
	if (others)
		fprintf(out, "\n%zu other thread%s of the process run%s no Python (see --json)\n",
			others, others == 1 ? "" : "s", others == 1 ? "s" : "");
	if (moving)
		fputs("\n~ changed while it was read (the process is not stopped): may be wrong\n",
		      out);
	return ferror(out) ? -EIO : 0;
}

static json_t *frame_json(const struct dump_frame *f)
{
	return json_pack("{s:s, s:s, s:o, s:b}", "file", f->filename, "function", f->name, "line",
			 f->line ? json_integer(f->line) : json_null(), "moving", f->moving);
}

static json_t *frames_json(const struct dump_thread *t)
{
	json_t *a = json_array();

	for (size_t i = 0; a && i < t->n; i++)
		if (json_array_append_new(a, frame_json(&t->frames[i])) < 0) {
			json_decref(a);
			return NULL;
		}
	return a;
}

static json_t *thread_json(const struct dump_thread *t)
{
	const char state[] = {t->state, '\0'};

	return json_pack("{s:i, s:s%, s:s, s:s, s:b, s:b, s:o}", "tid", t->tid, "name", t->name,
			 strnlen(t->name, sizeof(t->name)), "state", state, "doing", t->doing,
			 "python", t->python, "truncated", t->truncated, "frames", frames_json(t));
}

int dump_print_json(const struct dump *d, FILE *out)
{
	json_t *threads = json_array(), *all;
	int r = threads ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < d->nthreads; i++)
		r = json_array_append_new(threads, thread_json(&d->threads[i])) < 0 ? -ENOMEM : 0;
	all = json_pack("{s:i, s:s, s:s, s:s, s:o}", "pid", d->pid, "command", d->cmdline, "python",
			d->version, "interpreter", d->file, "threads", threads);
	if (r == 0 && (!all || json_dumpf(all, out, JSON_INDENT(1)) < 0 || fputc('\n', out) < 0))
		r = -EIO;
	json_decref(all);
	return r;
}
