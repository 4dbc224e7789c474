// SPDX-License-Identifier: BSD-2-Clause
/* Prints dumps as text: see dump.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
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

/* What is to be explained at the end. */
struct notes {
	bool moving, kernel_name;
};

static void print_doing(const struct dump_thread *t, FILE *out)
{
	const struct doing *d = &t->doing;

	/* The state was read before. */
	if (t->state == 'R' || d->kind == DOING_RUNNING || !d->text[0])
		fprintf(out, ", %s", state_text(d->kind == DOING_RUNNING ? 'R' : t->state));
	else if (d->kind == DOING_GIL || d->kind == DOING_LOCK)
		fprintf(out, ", waiting%s", d->text + strlen("wait"));
	else
		fprintf(out, ", %s in %s", state_text(t->state), d->text);
}

static void print_head(const struct dump_thread *t, struct notes *notes, FILE *out)
{
	fprintf(out, "\nthread ");
	if (t->tid)
		fprintf(out, "%d ", t->tid);
	else
		fprintf(out, "of unknown id");
	if (t->python_name)
		fprintf(out, "%s\"%s\"", t->tid ? "" : " ", t->python_name);
	else if (t->tid)
		fprintf(out, "[%s]", t->name);
	notes->kernel_name |= !t->python_name && t->tid;
	if (t->tid)
		print_doing(t, out);
	fputc('\n', out);
}

static void print_locals(const struct dump_frame *f, int indent, struct notes *notes, FILE *out)
{
	const struct python_locals *l = &f->locals;

	for (size_t i = 0; i < l->n; i++)
		fprintf(out, "%*s%s = %s\n", indent, "", l->v[i].name, l->v[i].value);
	if (l->more)
		fprintf(out, "%*s... and %zu more\n", indent, "", l->more);
	if (f->locals_state == DUMP_LOCALS_MOVING) {
		fprintf(out, "%*s~ (these variables)\n", indent, "");
		notes->moving = true;
	}
}

static void print_frames(const struct dump_frame *v, size_t n, int indent, struct notes *notes,
			 FILE *out)
{
	for (size_t i = 0; i < n; i++) {
		const struct dump_frame *f = &v[i];

		fprintf(out, "%*s%c %s (%s", indent, "", f->moving ? '~' : ' ', f->name,
			f->filename);
		if (f->line)
			fprintf(out, ":%d", f->line);
		fputs(")\n", out);
		notes->moving |= f->moving;
		print_locals(f, indent + 6, notes, out);
	}
}

static void print_thread(const struct dump_thread *t, struct notes *notes, FILE *out)
{
	print_head(t, notes, out);
	print_frames(t->frames, t->n, 2, notes, out);
	if (t->truncated)
		fputs("    ... outer frames are missing: too deep, or unreadable\n", out);
	if (!t->n && !t->truncated)
		fputs("    (runs no Python function)\n", out);
}

static size_t print_threads(const struct dump *d, struct notes *notes, FILE *out)
{
	size_t others = 0;

	for (size_t i = 0; i < d->nthreads; i++) {
		others += !d->threads[i].python;
		if (d->threads[i].python)
			print_thread(&d->threads[i], notes, out);
	}
	return others;
}

/* ---- tasks ------------------------------------------------------------------------------- */

#define TREE_DEPTH 64

struct tree {
	const struct dump *d;
	bool *printed; /* by index of the task */
	struct notes *notes;
	FILE *out;
};

static void print_task_head(const struct dump_task *t, int indent, FILE *out)
{
	fprintf(out, "%*stask", indent, "");
	if (t->name)
		fprintf(out, " \"%s\"", t->name);
	if (t->running)
		fprintf(out, ", running in thread %d", t->tid);
	else if (t->nawaits)
		fprintf(out, ", waits for %zu task%s", t->nawaits, t->nawaits == 1 ? "" : "s");
	else if (t->waits[0])
		fprintf(out, ", waits for %s", t->waits);
	fputc('\n', out);
}

/* A task, its coroutines, and the tasks that it waits for. Each is printed once. */
static void print_task(struct tree *tree, size_t i, unsigned int depth) // NOLINT(misc-no-recursion)
{
	const struct dump_task *t = &tree->d->tasks.v[i];
	int indent = 2 + 4 * (int)depth;

	if (tree->printed[i] || depth == TREE_DEPTH) {
		fprintf(tree->out, "%*stask \"%s\" (see above)\n", indent, "",
			t->name ? t->name : "?");
		return;
	}
	tree->printed[i] = true;
	print_task_head(t, indent, tree->out);
	print_frames(t->frames, t->n, indent + 2, tree->notes, tree->out);
	for (size_t k = 0; k < t->nawaits; k++)
		print_task(tree, t->awaits[k], depth + 1);
}

/* The tasks of one thread's event loop: first those for which no other waits, then cycles. */
static void print_loop(struct tree *tree, pid_t tid)
{
	const struct dump *d = tree->d;

	fputs("\nasyncio tasks", tree->out);
	if (tid)
		fprintf(tree->out, " of thread %d", tid);
	fputc('\n', tree->out);
	for (int awaited = 0; awaited < 2; awaited++)
		for (size_t i = 0; i < d->tasks.n; i++)
			if (d->tasks.v[i].tid == tid && d->tasks.v[i].awaited <= awaited &&
			    !tree->printed[i])
				print_task(tree, i, 0);
}

static void print_tasks_note(const struct dump *d, FILE *out)
{
	if (d->tasks.err)
		fprintf(out, "\nasyncio tasks cannot be read: %s\n", strerror(-d->tasks.err));
	else if (d->tasks.note == PYTHON_TASKS_UNSUPPORTED)
		fprintf(out, "\nasyncio tasks cannot be read in this build of Python %s\n",
			d->version);
	if (d->tasks.unread && d->tasks.note != PYTHON_TASKS_UNSUPPORTED)
		fprintf(out, "\n%" PRIu32 " asyncio task%s could not be read\n", d->tasks.unread,
			d->tasks.unread == 1 ? "" : "s");
}

static int print_tasks(const struct dump *d, struct notes *notes, FILE *out)
{
	_cleanup_free_ bool *printed = calloc(d->tasks.n + 1, sizeof(*printed));
	struct tree tree = {d, printed, notes, out};

	if (!printed)
		return -ENOMEM;
	for (size_t i = 0; i < d->tasks.n; i++)
		if (!printed[i])
			print_loop(&tree, d->tasks.v[i].tid);
	print_tasks_note(d, out);
	return 0;
}

static void print_greenlets(const struct dump *d, struct notes *notes, FILE *out)
{
	const struct dump_tasks *g = &d->greenlets;

	if (g->n)
		fputs("\nsuspended greenlets\n", out);
	for (size_t i = 0; i < g->n; i++) {
		fprintf(out, "  %s\n", g->v[i].waits);
		print_frames(g->v[i].frames, g->v[i].n, 4, notes, out);
	}
	if (g->err)
		fprintf(out, "\ngreenlets cannot be read: %s\n", strerror(-g->err));
	else if (g->note == PYTHON_TASKS_UNSUPPORTED)
		fputs("\ngreenlets cannot be found: no lists of objects\n", out);
	if (g->unread)
		fprintf(out, "\n%" PRIu32 " more greenlets\n", g->unread);
}

static void print_notes(const struct dump *d, const struct notes *notes, FILE *out)
{
	if (notes->kernel_name)
		fprintf(out, "\n[name]: the kernel's name of a thread%s\n",
			d->no_threading ? ", as the program has not imported threading" : "");
	if (d->names_moving)
		fputs("\n~ names of threads changed while they were read: may be wrong\n", out);
	if (notes->moving)
		fputs("\n~ changed while it was read (the process is not stopped): may be wrong\n",
		      out);
}

int dump_print_text(const struct dump *d, FILE *out)
{
	struct notes notes = {0};
	size_t others;
	int r;

	fprintf(out, "process %d: %s\nPython %s, %s\n", d->pid, d->cmdline, d->version, d->file);
	others = print_threads(d, &notes, out);
	r = print_tasks(d, &notes, out);
	print_greenlets(d, &notes, out);
	if (others)
		fprintf(out, "\n%zu other thread%s of the process run%s no Python (see --json)\n",
			others, others == 1 ? "" : "s", others == 1 ? "s" : "");
	print_notes(d, &notes, out);
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}
