// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dumps of every interpreter: names of threads, local variables and asyncio's tasks equal those
 * that the program itself prints.
 */
#include <errno.h>
#include <string.h>

#include "dump/dumper.h"
#include "harness/interpreters.h"
#include "harness/test.h"

TestSuite(dump_details, .timeout = 120);

#define LINES	  64
#define LINE_SIZE 8192

struct program {
	const struct interpreter *it;
	pid_t pid;
	int out;
	char lines[LINES][LINE_SIZE];
	unsigned int n;
	struct dump *dump;
};

static void start(struct program *p, const struct interpreter *it, const char *how)
{
	const char *top = getenv("PYPROF_TOP");
	char path[512], script[1200];

	snprintf(path, sizeof(path), "%s/tests/targets/dump_details.py", top ? top : ".");
	snprintf(
		script, sizeof(script),
		"import sys; sys.argv = ['', '%s']; exec(compile(open('%s').read(), '%s', 'exec'))",
		how, path, path);
	*p = (struct program){.it = it};
	p->pid = interpreter_start(it, script, &p->out);
	for (;; p->n++) {
		cr_assert_lt(p->n, LINES);
		interpreter_line(p->out, p->lines[p->n], LINE_SIZE);
		if (strcmp(p->lines[p->n], "end") == 0)
			break;
	}
}

static void take(struct program *p, const struct dump_opts *opts)
{
	struct diag diag = {0};

	assert_diag_ok(dump_take(p->pid, opts, &p->dump, &diag), &diag);
}

static void end(struct program *p)
{
	dump_free(p->dump);
	interpreter_end(p->pid, p->out);
}

static void on_every(void (*check)(const struct interpreter *it))
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		check(&v[i]);
}

/* Removes the line. Returns false if there is none. */
static bool drop_line(struct program *p, const char *text)
{
	for (unsigned int i = 0; i < p->n; i++) {
		if (strcmp(p->lines[i], text) != 0)
			continue;
		p->n--;
		if (i < p->n)
			memcpy(p->lines[i], p->lines[p->n], LINE_SIZE);
		return true;
	}
	return false;
}

static void check_names(const struct interpreter *it)
{
	static struct program p;

	start(&p, it, "names");
	take(&p, NULL);
	for (size_t i = 0; i < p.dump->nthreads; i++) {
		const struct dump_thread *t = &p.dump->threads[i];

		cr_assert(t->python && t->python_name, "%s: a thread has no name", it->exe);
		cr_assert(drop_line(&p, t->python_name), "%s: no thread has the name '%s'", it->exe,
			  t->python_name);
		cr_assert(strcmp(t->python_name, "MainThread") != 0 || t->tid == p.pid);
	}
	cr_assert(p.n == 0 && !p.dump->no_threading, "%s: '%s' is missing", it->exe, p.lines[0]);
	end(&p);
}

Test(dump_details, names)
{
	on_every(check_names);
}

/* A program that does not import threading: the kernel's names. */
static void check_no_names(const struct interpreter *it)
{
	struct dump *d;
	struct diag diag = {0};
	char line[16];
	int out;
	pid_t pid = interpreter_start(it,
				      "import sys; [sys.modules.pop(n, None) for n in "
				      "('threading', 'asyncio.tasks')]\n"
				      "import time; print('ready'); time.sleep(600)",
				      &out);

	interpreter_line(out, line, sizeof(line));
	assert_diag_ok(dump_take(pid, NULL, &d, &diag), &diag);
	cr_assert(d->no_threading && d->nthreads == 1 && !d->threads[0].python_name);
	cr_assert(d->threads[0].name[0] && d->threads[0].doing.kind != DOING_GIL);
	cr_assert(d->ntasks == 0 && d->tasks_note == PYTHON_TASKS_NO_ASYNCIO);
	dump_free(d);
	interpreter_end(pid, out);
}

Test(dump_details, without_threading)
{
	on_every(check_no_names);
}

/* ---- local variables --------------------------------------------------------------------- */

static const struct dump_frame *frame_of(const struct dump *d, const char *line)
{
	for (size_t i = 0; i < d->nthreads; i++)
		for (size_t k = 0; k < d->threads[i].n; k++) {
			const struct dump_frame *f = &d->threads[i].frames[k];
			const char *dot = strrchr(f->name, '.'), *name = dot ? dot + 1 : f->name;
			size_t n = strlen(name);

			if (strncmp(line, name, n) == 0 && line[n] == ' ')
				return f;
		}
	return NULL;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text += strlen(what))
		n++;
	return n;
}

static void check_frame(const struct interpreter *it, const struct dump_frame *f, const char *line)
{
	size_t n = count(line, " = ");

	cr_assert(f && f->locals_state == DUMP_LOCALS_READ, "%s: %.60s", it->exe, line);
	cr_assert(f->locals.n == (n < PYTHON_LOCALS_MAX ? n : PYTHON_LOCALS_MAX) &&
			  f->locals.more == n - f->locals.n,
		  "%s: %zu, %zu of %zu in %s", it->exe, f->locals.n, f->locals.more, n, line);
	for (size_t i = 0; i < f->locals.n; i++) {
		char want[PYTHON_REPR_MAX + 64];
		const char *at;

		snprintf(want, sizeof(want), " %.40s = %s", f->locals.v[i].name,
			 f->locals.v[i].value);
		at = strstr(line, want);
		cr_assert(at && (at[strlen(want)] == ';' || !at[strlen(want)]), "%s:%s not in %s",
			  it->exe, want, line);
	}
}

static void check_locals(const struct interpreter *it)
{
	static struct program p;

	start(&p, it, "locals");
	take(&p, &(struct dump_opts){.locals = true});
	cr_assert_eq(p.n, 3);
	for (unsigned int i = 0; i < p.n; i++)
		check_frame(it, frame_of(p.dump, p.lines[i]), p.lines[i]);
	dump_free(p.dump);
	take(&p, NULL);
	for (size_t i = 0; i < p.dump->nthreads; i++)
		for (size_t k = 0; k < p.dump->threads[i].n; k++)
			cr_assert_eq(p.dump->threads[i].frames[k].locals_state, DUMP_LOCALS_NONE);
	end(&p);
}

Test(dump_details, locals)
{
	on_every(check_locals);
}

/* ---- tasks ------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *outermost(const struct dump_task *t)
{
	return t->n ? t->frames[t->n - 1].name : "";
}

static void describe(const struct dump *d, const struct dump_task *t, char out[LINE_SIZE])
{
	const char *awaited[LINES];
	size_t at = (size_t)snprintf(out, LINE_SIZE, "%s ", t->name ? t->name : "-");

	for (size_t i = 0; i < t->n; i++)
		at += (size_t)snprintf(out + at, LINE_SIZE - at, "%s%s:%d", i ? " " : "",
				       t->frames[i].name, t->frames[i].line);
	cr_assert_lt(t->nawaits, LINES);
	for (size_t i = 0; i < t->nawaits; i++)
		awaited[i] = outermost(&d->tasks[t->awaits[i]]);
	qsort(awaited, t->nawaits, sizeof(*awaited), by_text);
	at += (size_t)snprintf(out + at, LINE_SIZE - at, " > ");
	for (size_t i = 0; i < t->nawaits; i++)
		at += (size_t)snprintf(out + at, LINE_SIZE - at, "%s%s", i ? "," : "", awaited[i]);
}

static void check_task(struct program *p, const struct dump_task *t)
{
	char text[LINE_SIZE];

	describe(p->dump, t, text);
	cr_assert(t->tid && t->tid != p->pid && !t->moving, "%s: %s", p->it->exe, text);
	if (strcmp(outermost(t), "computes") == 0) {
		cr_assert(t->running && !t->nawaits, "%s: %s", p->it->exe, text);
		return;
	}
	cr_assert(!t->running && drop_line(p, text), "%s: no task is '%s', but '%s'", p->it->exe,
		  text, p->lines[0]);
}

static void check_tasks(const struct interpreter *it)
{
	static struct program p;
	size_t running = 0;

	start(&p, it, "tasks");
	take(&p, NULL);
	if (it->minor == 6) { /* the module does not show its list */
		cr_assert_eq(p.dump->tasks_note, PYTHON_TASKS_UNSUPPORTED);
		end(&p);
		return;
	}
	cr_assert(p.dump->tasks_note == PYTHON_TASKS_READ && !p.dump->tasks_err &&
			  !p.dump->tasks_unread,
		  "%s", it->exe);
	for (size_t i = 0; i < p.dump->ntasks; i++) {
		running += p.dump->tasks[i].running;
		check_task(&p, &p.dump->tasks[i]);
	}
	cr_assert(p.n == 0 && running == 1, "%s: '%s' is missing", it->exe, p.lines[0]);
	end(&p);
}

Test(dump_details, tasks)
{
	on_every(check_tasks);
}
