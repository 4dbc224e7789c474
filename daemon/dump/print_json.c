// SPDX-License-Identifier: BSD-2-Clause
/* Prints dumps as JSON: see dump.h and packaging/doc/formats.md. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "dump/dump.h"

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

/* Appends to an array, which may be NULL. Returns the array, or NULL. */
static json_t *append(json_t *array, json_t *item)
{
	if (array && json_array_append_new(array, item) < 0) {
		json_decref(array);
		return NULL;
	}
	if (!array)
		json_decref(item);
	return array;
}

static json_t *locals_json(const struct dump_frame *f)
{
	json_t *a = json_array();

	if (f->locals_state == DUMP_LOCALS_NONE || f->locals_state == DUMP_LOCALS_GONE) {
		json_decref(a);
		return json_null();
	}
	for (size_t i = 0; i < f->locals.n; i++)
		a = append(a, json_pack("{s:s, s:s}", "name", f->locals.v[i].name, "value",
					f->locals.v[i].value));
	return json_pack("{s:o, s:I, s:b}", "variables", a, "more", (json_int_t)f->locals.more,
			 "moving", f->locals_state == DUMP_LOCALS_MOVING);
}

static json_t *frame_json(const struct dump_frame *f)
{
	return json_pack("{s:s, s:s, s:o, s:b, s:o}", "file", f->filename, "function", f->name,
			 "line", f->line ? json_integer(f->line) : json_null(), "moving", f->moving,
			 "locals", locals_json(f));
}

static json_t *frames_json(const struct dump_frame *v, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		a = append(a, frame_json(&v[i]));
	return a;
}

static json_t *thread_json(const struct dump_thread *t)
{
	const char state[] = {t->state, '\0'};

	return json_pack("{s:i, s:s%, s:o, s:s, s:s, s:o, s:b, s:b, s:o}", "tid", t->tid, "name",
			 t->name, strnlen(t->name, sizeof(t->name)), "python_name",
			 text_or_null(t->python_name), "state", state, "doing", t->doing.text,
			 "kind", text_or_null(doing_kind_name(t->doing.kind)), "python", t->python,
			 "truncated", t->truncated, "frames", frames_json(t->frames, t->n));
}

static json_t *task_json(const struct dump_task *t)
{
	json_t *awaits = json_array();

	for (size_t i = 0; i < t->nawaits; i++)
		awaits = append(awaits, json_integer((json_int_t)t->awaits[i]));
	return json_pack("{s:o, s:o, s:b, s:b, s:o, s:o, s:o}", "name", text_or_null(t->name),
			 "tid", t->tid ? json_integer(t->tid) : json_null(), "running", t->running,
			 "moving", t->moving, "waits_for",
			 text_or_null(t->waits[0] ? t->waits : NULL), "awaits", awaits, "frames",
			 frames_json(t->frames, t->n));
}

/* Why there is no list of tasks; NULL: there is. */
static const char *no_tasks(const struct dump_tasks *t)
{
	if (t->err)
		return strerror(-t->err);
	if (t->note == PYTHON_TASKS_NO_MODULE)
		return "the module is not imported";
	return t->note == PYTHON_TASKS_UNSUPPORTED ? "unsupported build of Python" : NULL;
}

static json_t *greenlet_json(const struct dump_task *t)
{
	return json_pack("{s:s, s:b, s:o}", "type", t->waits, "moving", t->moving, "frames",
			 frames_json(t->frames, t->n));
}

static json_t *tasks_json(const struct dump_tasks *t, json_t *(*row)(const struct dump_task *t))
{
	json_t *a = json_array();

	for (size_t i = 0; i < t->n; i++)
		a = append(a, row(&t->v[i]));
	return a;
}

int dump_print_json(const struct dump *d, FILE *out)
{
	json_t *threads = json_array(), *all;
	int r = 0;

	for (size_t i = 0; i < d->nthreads; i++)
		threads = append(threads, thread_json(&d->threads[i]));
	all = json_pack("{s:s, s:i, s:i, s:s, s:s, s:s, s:o, s:b, s:o, s:o, s:I, s:o, s:o, s:I}",
			"format", "pyprofd-dump", "version", 1, "pid", d->pid, "command",
			d->cmdline, "python", d->version, "interpreter", d->file, "threads",
			threads, "names_moving", d->names_moving, "tasks",
			tasks_json(&d->tasks, task_json), "no_tasks",
			text_or_null(no_tasks(&d->tasks)), "tasks_unread",
			(json_int_t)d->tasks.unread, "greenlets",
			tasks_json(&d->greenlets, greenlet_json), "no_greenlets",
			text_or_null(no_tasks(&d->greenlets)), "greenlets_unread",
			(json_int_t)d->greenlets.unread);
	if (!all || json_dumpf(all, out, JSON_INDENT(1)) < 0 || fputc('\n', out) < 0)
		r = -EIO;
	json_decref(all);
	return r;
}
