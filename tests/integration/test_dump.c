// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dumps of every interpreter. For waiting threads, the stacks equal those that the process reports
 * itself. For a thread that calls and returns all the time, each stack is possible or marked as
 * torn.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/parse.h"
#include "dump/dumper.h"
#include "harness/interpreters.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "target/target.h"

#define THREADS	  13
#define TEXT_SIZE 8192

static const char *program(char path[512])
{
	const char *top = getenv("PYPROF_TOP");

	snprintf(path, 512, "%s/tests/targets/dump.py", top ? top : ".");
	return path;
}

static pid_t start(const struct interpreter *it, const char *how, int *out)
{
	char path[512], script[1200];

	program(path);
	snprintf(
		script, sizeof(script),
		"import sys; sys.argv = ['', '%s']; exec(compile(open('%s').read(), '%s', 'exec'))",
		how, path, path);
	return interpreter_start(it, script, out);
}

/* Writes "name:line name:line ...", as the program prints it. */
static void describe(const struct dump_thread *t, char out[TEXT_SIZE])
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < t->n && at < TEXT_SIZE; i++)
		at += (size_t)snprintf(out + at, TEXT_SIZE - at, "%s%s:%d", i ? " " : "",
				       t->frames[i].name, t->frames[i].line);
}

static bool has_thread(const struct dump *d, const char *want)
{
	char text[TEXT_SIZE];

	for (size_t i = 0; i < d->nthreads; i++) {
		describe(&d->threads[i], text);
		if (strcmp(text, want) == 0 && d->threads[i].state == 'S')
			return true;
	}
	return false;
}

static bool all_wait(const struct dump *d)
{
	for (size_t i = 0; i < d->nthreads; i++)
		if (d->threads[i].state != 'S')
			return false;
	return true;
}

/* The program's threads are on their last lines, but perhaps not off their CPUs yet. */
static struct dump *take_waiting(pid_t pid)
{
	struct diag diag = {0};
	struct dump *d;

	for (;;) {
		assert_diag_ok(dump_take(pid, NULL, &d, &diag), &diag);
		if (all_wait(d))
			return d;
		dump_free(d);
		cr_assert(!patience_over(), "waited for threads that wait");
		patience_step();
	}
}

static void check_waiting(const struct interpreter *it)
{
	static char lines[THREADS][TEXT_SIZE];
	_cleanup_(dump_freep) struct dump *d = NULL;
	int out;
	pid_t pid = start(it, "wait", &out);

	for (unsigned int i = 0; i < THREADS; i++)
		interpreter_line(out, lines[i], TEXT_SIZE);
	d = take_waiting(pid);
	for (unsigned int i = 0; i < THREADS; i++)
		cr_assert(has_thread(d, lines[i]), "%s: no thread has %s", it->exe, lines[i]);
	for (size_t i = 0; i < d->nthreads; i++)
		for (size_t k = 0; k < d->threads[i].n; k++)
			cr_assert(!d->threads[i].frames[k].moving);
	interpreter_end(pid, out);
}

Test(dump, of_threads_that_wait)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		check_waiting(&v[i]);
}

/* Returns whether a frame can have this caller, at this line. */
static bool fits(const struct dump_frame *f, const struct dump_frame *caller, const int line[6])
{
	static const struct {
		const char *name, *caller;
		unsigned int line;
	} calls[] = {
		{"one", "running", 0}, {"even", "running", 1}, {"two", "running", 2},
		{"odd", "even", 3},    {"even", "odd", 4},     {"leaf_even", "even", 3},
		{"two", "one", 5},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(calls[i].name, f->name) == 0 &&
		    strcmp(calls[i].caller, caller->name) == 0)
			return caller->line == line[calls[i].line];
	return strcmp(f->name, "running") == 0 || strcmp(f->name, "<module>") == 0;
}

/* Finds the numbers of the lines with these texts in the program itself. */
static void find_lines(int out[6])
{
	static const char *const texts[6] = {
		"        one()\n",	    "        even(60)\n",
		"        two()\n",	    "    return odd(n - 1) if n else leaf_even()\n",
		"    return even(n - 1)\n", "    return two()\n"};
	char path[512], line[256];
	FILE *f;

	f = fopen(program(path), "re");
	cr_assert(f);
	for (int n = 1; fgets(line, sizeof(line), f); n++)
		for (unsigned int i = 0; i < 6; i++)
			if (strcmp(line, texts[i]) == 0)
				out[i] = n;
	(void)fclose(f);
}

/* Returns the number of stacks that were complete. */
static unsigned int check_running(const struct interpreter *it, uint64_t dumps)
{
	unsigned int whole = 0;
	int line[6] = {0}, out;
	char ready[16];
	pid_t pid = start(it, "run", &out);
	_cleanup_(dumper_freep) struct dumper *from = NULL;
	struct diag diag = {0};

	find_lines(line);
	interpreter_line(out, ready, sizeof(ready));
	assert_diag_ok(dumper_open(pid, &from, &diag), &diag);
	for (uint64_t i = 0; i < dumps; i++) {
		_cleanup_(dump_freep) struct dump *d = NULL;
		const struct dump_thread *th;
		size_t moving = 0;

		assert_diag_ok(dumper_take(from, NULL, &d, &diag), &diag);
		cr_assert(d->nthreads == 1 && d->threads[0].n >= 1);
		th = &d->threads[0];
		for (size_t k = 0; k < th->n; k++) {
			const struct dump_frame *f = &th->frames[k];

			moving += f->moving;
			if (!f->moving && k + 1 < th->n)
				cr_assert(fits(f, f + 1, line), "%s: %s:%d called by %s:%d",
					  it->exe, f->name, f->line, f[1].name, f[1].line);
		}
		whole += !moving;
	}
	interpreter_end(pid, out);
	return whole;
}

/* The local variable n of a frame; -1: not certain. */
static int64_t argument(const struct dump_frame *f)
{
	uint64_t n;

	if (f->moving || f->locals_state != DUMP_LOCALS_READ || f->locals.n != 1 ||
	    strcmp(f->locals.v[0].name, "n") != 0 || parse_u64(f->locals.v[0].value, 0, 60, &n) < 0)
		return -1;
	return (int64_t)n;
}

/* even() and odd() call each other with n - 1. Returns the number of pairs. */
static unsigned int check_arguments(const struct interpreter *it, const struct dump_thread *t)
{
	unsigned int pairs = 0;

	for (size_t k = 0; k + 1 < t->n; k++) {
		int64_t n = argument(&t->frames[k]), caller = argument(&t->frames[k + 1]);

		if (n < 0 || caller < 0)
			continue;
		cr_assert_eq(n, caller - 1, "%s: %s(%d) called by %s(%d)", it->exe,
			     t->frames[k].name, (int)n, t->frames[k + 1].name, (int)caller);
		pairs++;
	}
	return pairs;
}

static unsigned int check_running_locals(const struct interpreter *it)
{
	_cleanup_(dumper_freep) struct dumper *from = NULL;
	struct diag diag = {0};
	unsigned int pairs = 0;
	char ready[16];
	int out;
	pid_t pid = start(it, "run", &out);

	interpreter_line(out, ready, sizeof(ready));
	assert_diag_ok(dumper_open(pid, &from, &diag), &diag);
	for (unsigned int i = 0; i < 20; i++) {
		_cleanup_(dump_freep) struct dump *d = NULL;

		assert_diag_ok(dumper_take(from, &(struct dump_opts){.locals = true}, &d, &diag),
			       &diag);
		pairs += check_arguments(it, &d->threads[0]);
	}
	interpreter_end(pid, out);
	return pairs;
}

/* Local variables are those of the call that the stack shows, or marked. */
Test(dump, locals_of_a_thread_that_runs)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "%s: %u pairs of calls\n", v[i].exe, check_running_locals(&v[i]));
}

/* The inspector: this process's last child. */
static pid_t find_inspector(void)
{
	char path[64], line[256] = "", *next = line;
	uint64_t pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	cr_assert(f && fgets(line, sizeof(line), f));
	fclose(f);
	for (char *word; (word = strsep(&next, " "));)
		if (*word)
			assert_ok(parse_u64(word, 1, INT32_MAX, &pid));
	return (pid_t)pid;
}

struct later {
	atomic_bool asks;
	pid_t inspector;
};

/* Returns whether this process's first thread waits in the kernel. */
static bool waits(void)
{
	struct target_thread thread;

	return target_thread_read(getpid(), getpid(), &thread) == 0 && thread.state == 'S';
}

/* The first thread has asked for a dump, and waits for the answer. */
static void *continue_later(void *arg)
{
	struct later *l = arg;

	while (!patience_over() && !(atomic_load(&l->asks) && waits()))
		patience_step();
	kill(l->inspector, SIGCONT);
	return NULL;
}

/* A process that is kept waiting on a busy machine looks like that. */
Test(dump, waits_for_an_inspector_that_stands_still)
{
	_cleanup_(dumper_freep) struct dumper *from = NULL;
	_cleanup_(dump_freep) struct dump *d = NULL;
	struct interpreter v[INTERPRETERS_MAX];
	struct later l = {0};
	struct diag diag = {0};
	pthread_t later;
	char ready[16];
	pid_t pid;
	int out;

	cr_assert(interpreters_find(v) > 0);
	pid = start(&v[0], "run", &out);
	interpreter_line(out, ready, sizeof(ready));
	assert_diag_ok(dumper_open(pid, &from, &diag), &diag);
	l.inspector = find_inspector();
	cr_assert_neq(l.inspector, pid);
	assert_ok(kill(l.inspector, SIGSTOP));
	assert_ok(-pthread_create(&later, NULL, continue_later, &l));
	atomic_store(&l.asks, true);
	assert_diag_ok(dumper_take(from, NULL, &d, &diag), &diag);
	pthread_join(later, NULL);
	cr_assert(d->nthreads >= 1 && d->threads[0].n > 2);
	interpreter_end(pid, out);
}

/* PYPROF_TEST_DUMPS is the number of dumps of each interpreter. */
Test(dump, of_a_thread_that_runs)
{
	const char *text = getenv("PYPROF_TEST_DUMPS");
	uint64_t dumps = 200;
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	if (text)
		assert_ok(parse_u64(text, 1, 100000, &dumps));
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "%s: %u of %" PRIu64 " stacks whole\n", v[i].exe,
			check_running(&v[i], dumps), dumps);
}
