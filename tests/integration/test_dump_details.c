// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dumps of every interpreter: names of threads, local variables and asyncio's tasks equal those
 * that the program itself prints.
 */
#include <errno.h>
#include <string.h>

#include "dump/dumper.h"
#include "harness/interpreters.h"
#include "harness/patience.h"
#include "harness/test.h"

TestSuite(dump_details);

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

/* Until the program is where its lines were printed, some of its stacks change. */
static void take_at_rest(struct program *p, bool (*is_at_rest)(const struct dump *d))
{
	for (take(p, NULL); !is_at_rest(p->dump); take(p, NULL)) {
		cr_assert(!patience_over(), "%s: waited for a program at rest", p->it->exe);
		dump_free(p->dump);
		patience_step();
	}
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
	cr_assert(d->tasks.n == 0 && d->tasks.note == PYTHON_TASKS_NO_MODULE);
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
		awaited[i] = outermost(&d->tasks.v[t->awaits[i]]);
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

static bool no_task_moves(const struct dump *d)
{
	for (size_t i = 0; i < d->tasks.n; i++)
		if (d->tasks.v[i].moving)
			return false;
	return true;
}

static void check_tasks(const struct interpreter *it)
{
	static struct program p;
	size_t running = 0;

	start(&p, it, "tasks");
	take_at_rest(&p, no_task_moves);
	if (it->minor == 6) { /* the module does not show its list */
		cr_assert_eq(p.dump->tasks.note, PYTHON_TASKS_UNSUPPORTED);
		end(&p);
		return;
	}
	cr_assert(p.dump->tasks.note == PYTHON_TASKS_READ && !p.dump->tasks.err &&
			  !p.dump->tasks.unread,
		  "%s", it->exe);
	for (size_t i = 0; i < p.dump->tasks.n; i++) {
		running += p.dump->tasks.v[i].running;
		check_task(&p, &p.dump->tasks.v[i]);
	}
	cr_assert(p.n == 0 && running == 1, "%s: '%s' is missing", it->exe, p.lines[0]);
	end(&p);
}

Test(dump_details, tasks)
{
	on_every(check_tasks);
}

/* ---- tasks that run ---------------------------------------------------------------------- */

/* Returns whether a coroutine can await the other; the outermost one is of a task. */
static bool fits(const char *name, const char *caller)
{
	static const char *const pairs[][2] = {
		{"__sleep0", "sleep"}, {"sleep", "inner"}, {"inner", "outer"},
		{"outer", NULL},       {"spawns", NULL},   {"runs", NULL},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		if (strcmp(pairs[i][0], name) == 0)
			return caller ? pairs[i][1] && strcmp(pairs[i][1], caller) == 0
				      : !pairs[i][1];
	return false;
}

/* Returns whether the task that awaits can do so. */
static bool may_await(const struct dump_task *t, const struct dump_task *other)
{
	return strcmp(outermost(other), strcmp(outermost(t), "runs") == 0 ? "spawns" : "outer") ==
	       0;
}

static void check_chain(const struct program *p, const struct dump_task *t)
{
	for (size_t k = 0; k < t->n; k++)
		cr_assert(fits(t->frames[k].name, k + 1 < t->n ? t->frames[k + 1].name : NULL),
			  "%s: %s called by %s", p->it->exe, t->frames[k].name,
			  k + 1 < t->n ? t->frames[k + 1].name : "nothing");
	for (size_t k = 0; k < t->nawaits; k++) {
		const struct dump_task *other = &p->dump->tasks.v[t->awaits[k]];

		cr_assert(other->moving || !other->n || may_await(t, other), "%s: %s waits for %s",
			  p->it->exe, outermost(t), outermost(other));
	}
}

static void check_busy(const struct interpreter *it)
{
	static struct program p;
	_cleanup_(dumper_freep) struct dumper *from = NULL;
	struct diag diag = {0};
	size_t whole = 0, moving = 0;

	if (it->minor == 6)
		return;
	start(&p, it, "busy");
	assert_diag_ok(dumper_open(p.pid, &from, &diag), &diag);
	for (unsigned int i = 0; i < 30 || (!whole && !patience_over()); i++) {
		assert_diag_ok(dumper_take(from, NULL, &p.dump, &diag), &diag);
		for (size_t k = 0; k < p.dump->tasks.n; k++) {
			moving += p.dump->tasks.v[k].moving;
			whole += !p.dump->tasks.v[k].moving;
			if (!p.dump->tasks.v[k].moving)
				check_chain(&p, &p.dump->tasks.v[k]);
		}
		dump_free(p.dump);
	}
	p.dump = NULL;
	fprintf(stderr, "%s: %zu tasks whole, %zu torn\n", it->exe, whole, moving);
	cr_assert(whole);
	end(&p);
}

Test(dump_details, tasks_that_run)
{
	on_every(check_busy);
}

/* ---- greenlets --------------------------------------------------------------------------- */

static void check_greenlets(const struct interpreter *it)
{
	static struct program p;
	char text[LINE_SIZE];

	start(&p, it, "greenlets");
	take(&p, NULL);
	cr_assert(p.n ? p.dump->greenlets.note == PYTHON_TASKS_READ
		      : p.dump->greenlets.note == PYTHON_TASKS_NO_MODULE,
		  "%s", it->exe);
	fprintf(stderr, "%s: %u suspended greenlets\n", it->exe, p.n);
	for (size_t i = 0; i < p.dump->greenlets.n; i++) {
		const struct dump_task *t = &p.dump->greenlets.v[i];
		size_t at = 0;

		text[0] = '\0';
		for (size_t k = 0; k < t->n; k++)
			at += (size_t)snprintf(text + at, LINE_SIZE - at, "%s%s:%d", k ? " " : "",
					       t->frames[k].name, t->frames[k].line);
		cr_assert(!t->moving && drop_line(&p, text), "%s: %s", it->exe, text);
	}
	cr_assert_eq(p.n, 0, "%s: '%s' is missing", it->exe, p.lines[0]);
	end(&p);
}

/* Where greenlet is installed. */
Test(dump_details, greenlets)
{
	on_every(check_greenlets);
}

static void check_switching(const struct interpreter *it)
{
	static struct program p;
	_cleanup_(dumper_freep) struct dumper *from = NULL;
	struct diag diag = {0};

	start(&p, it, "switching");
	if (!p.n) {
		end(&p);
		return;
	}
	assert_diag_ok(dumper_open(p.pid, &from, &diag), &diag);
	for (unsigned int i = 0; i < 24; i++) {
		assert_diag_ok(dumper_take(from, NULL, &p.dump, &diag), &diag);
		cr_assert(p.dump->nthreads == 1 && p.dump->threads[0].n,
			  "%s: dump %u has no frames", it->exe, i);
		dump_free(p.dump);
		p.dump = NULL;
	}
	end(&p);
}

Test(dump_details, a_thread_between_greenlets_is_read_again)
{
	on_every(check_switching);
}

/* ---- kinds of waiting -------------------------------------------------------------------- */

/* The name of a thread that waits is what the dump is to show. */
static bool waits_as_named(const struct dump_thread *t)
{
	const char *kind = doing_kind_name(t->doing.kind);
	char text[512];

	snprintf(text, sizeof(text), "%s %s", kind ? kind : "-", t->doing.text);
	return strncmp(text, t->python_name, strlen(t->python_name)) == 0 ||
	       /* time.sleep() is a select() up to 3.10. */
	       (strcmp(t->python_name, "sleep clock_nanosleep") == 0 &&
		(strcmp(text, "syscall select") == 0 || strcmp(text, "syscall pselect6") == 0));
}

static bool is_observed(const struct dump_thread *t)
{
	return strcmp(t->python_name, "computes") != 0 && strcmp(t->python_name, "main") != 0;
}

static bool all_wait_as_named(const struct dump *d)
{
	for (size_t i = 0; i < d->nthreads; i++) {
		const struct dump_thread *t = &d->threads[i];

		if (!t->python_name || (is_observed(t) && !waits_as_named(t)))
			return false;
	}
	return true;
}

static unsigned int check_kinds_once(struct program *p, struct dumper *from)
{
	struct diag diag = {0};
	unsigned int gil = 0;

	assert_diag_ok(dumper_take(from, NULL, &p->dump, &diag), &diag);
	for (size_t i = 0; i < p->dump->nthreads; i++) {
		const struct dump_thread *t = &p->dump->threads[i];

		cr_assert(t->python && t->python_name && !p->dump->names_moving);
		if (strcmp(t->python_name, "computes") == 0)
			gil += t->doing.kind == DOING_GIL;
		else if (is_observed(t))
			cr_assert(waits_as_named(t), "%s: %s, not %s", p->it->exe, t->doing.text,
				  t->python_name);
	}
	dump_free(p->dump);
	p->dump = NULL;
	return gil;
}

static void check_kinds(const struct interpreter *it)
{
	static struct program p;
	_cleanup_(dumper_freep) struct dumper *from = NULL;
	struct diag diag = {0};
	bool with_gil = !(it->abi & LAYOUT_ABI_FREE_THREADED);
	unsigned int gil = 0;

	start(&p, it, "kinds");
	assert_diag_ok(dumper_open(p.pid, &from, &diag), &diag);
	take_at_rest(&p, all_wait_as_named);
	dump_free(p.dump);
	/* Of the three threads that compute, two wait for the GIL, and run for a moment every 5 ms. */
	for (unsigned int i = 0; i < 20 || (gil < 3 && with_gil && !patience_over()); i++)
		gil += check_kinds_once(&p, from);
	cr_assert(with_gil ? gil >= 3 : !gil, "%s: %u", it->exe, gil);
	end(&p);
}

Test(dump_details, kinds_of_waiting)
{
	on_every(check_kinds);
}
