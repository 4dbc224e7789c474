// SPDX-License-Identifier: BSD-2-Clause
/* Takes dumps: see dumper.h. */
#include "dump/dumper.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "dump/doing.h"
#include "dump/frames.h"
#include "dump/tasks.h"
#include "inspect/inspect.h"
#include "target/target.h"

/* Local variables are read of the innermost frames of each thread, and of so many in all. */
#define LOCALS_FRAMES_MAX 256
#define LOCALS_MAX	  20000

/*
 * A thread between two greenlets is read again when it has run for so long: at first, and at most. On a
 * busy machine it may not run for a long time, so all readings together may take BETWEEN_END_NS.
 */
#define BETWEEN_NS     1000000
#define BETWEEN_MAX_NS 64000000
#define BETWEEN_END_NS 1000000000
#define BETWEEN_LOOK   1000000

/*
 * A frame without a code object was reached through an invalid pointer, because the stack changed
 * during the read. All frames inside of it are then uncertain as well, even if all readings agree.
 */
static void mark_moving(struct dump_thread *t, size_t to)
{
	for (size_t i = 0; i <= to; i++)
		t->frames[i].moving = true;
}

static int fill_frames(struct frames *frames, const struct python_stack *st, struct dump_thread *t)
{
	int r = 0;

	t->frames = calloc(st->n + 1, sizeof(*t->frames));
	if (!t->frames)
		return -ENOMEM;
	for (size_t i = 0; i < st->n && r == 0; i++) {
		struct dump_frame *f = &t->frames[t->n++];
		bool known;

		r = frames_fill(frames, st->frames[i].code, f, &known);
		f->line = st->lines ? st->lines[i] : 0;
		f->moving = i < st->n - st->stable;
		if (!known)
			mark_moving(t, i);
	}
	for (size_t i = 0; i < t->n && r == 0 && i < LOCALS_FRAMES_MAX; i++)
		frames_fill_locals(frames, st->frames[i].frame, st->frames[i].code, &t->frames[i]);
	return r;
}

struct dumper {
	struct target *target;
	struct inspect *in;
	struct inspect_result found;
};

/* The parts from which a dump is assembled. */
struct parts {
	struct dumper *from; /* borrowed */
	struct python_stack *stacks;
	size_t nstacks;
	struct target_thread *threads;
	size_t nthreads;
	bool locals; /* are read */
	struct frames frames;
	struct python_names names;
	struct pyp_gil_range gils[PYP_GIL_RANGES];
};

/* The kernel's data about a thread; NULL: the process has no thread with this id. */
static const struct target_thread *thread_of(const struct parts *p, pid_t tid)
{
	for (size_t i = 0; i < p->nthreads; i++)
		if (p->threads[i].tid == tid)
			return &p->threads[i];
	return NULL;
}

/* Adds the kernel's data about the thread. Returns false if there are none. */
static bool fill_kernel(struct dump_thread *t, const struct parts *p)
{
	const struct target_thread *of = thread_of(p, t->tid);

	t->state = '?';
	if (!of)
		return false;
	memcpy(t->name, of->comm, sizeof(t->name));
	t->state = of->state;
	return true;
}

static void drop_threads(struct parts *p)
{
	python_stacks_free(p->stacks, p->nstacks);
	free(p->threads);
	p->stacks = NULL;
	p->threads = NULL;
	p->nstacks = p->nthreads = 0;
}

static void parts_deinit(struct parts *p)
{
	frames_deinit(&p->frames);
	python_names_deinit(&p->names);
	drop_threads(p);
}

int dumper_open(pid_t pid, struct dumper **ret, struct diag *diag)
{
	_cleanup_(dumper_freep) struct dumper *d = calloc(1, sizeof(*d));
	struct inspect_opts io = {.check = true, .details = true, .patient = true};
	int r;

	if (!d)
		return diag_errno(diag, ENOMEM, "cannot dump process %d", pid);
	r = target_open(pid, &d->target, diag);
	if (r < 0)
		return r;
	io.target = d->target;
	r = inspect_open(&io, &d->in, &d->found, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(d);
	return 0;
}

void dumper_free(struct dumper *d)
{
	if (!d)
		return;
	inspect_result_deinit(&d->found);
	inspect_free(d->in);
	target_free(d->target);
	free(d);
}

/* Whether the thread runs, or will as soon as it has a CPU or the memory that it waits for */
static bool runs(const struct target_thread *t)
{
	return t->state == 'R' || t->state == 'D';
}

/*
 * A thread that runs and has no frames: it may be in the middle of a switch to a new greenlet. NULL:
 * there is none.
 */
static const struct target_thread *find_between(const struct parts *p)
{
	for (size_t i = 0; i < p->nstacks; i++) {
		const struct python_stack *st = &p->stacks[i];
		const struct target_thread *of = st->n || st->truncated ? NULL
									: thread_of(p, st->tid);

		if (of && runs(of))
			return of;
	}
	return NULL;
}

/* Waits until the thread has run for ns more, or no longer runs. */
static void let_run(const struct parts *p, const struct target_thread *from, uint64_t ns,
		    uint64_t until_ns)
{
	struct target_thread now = *from;

	while (runs(&now) && now.runtime < from->runtime + ns && clock_monotonic_ns() < until_ns) {
		(void)nanosleep(&(struct timespec){.tv_nsec = BETWEEN_LOOK}, NULL);
		if (target_thread_read(p->from->target->pid, from->tid, &now) < 0)
			return;
	}
}

static int read_once(struct parts *p, struct diag *diag)
{
	struct target *target = p->from->target;
	int r = inspect_dump(p->from->in, target->pid, &p->stacks, &p->nstacks);

	if (r == 0)
		return target_threads(target, &p->threads, &p->nthreads, diag);
	p->nstacks = 0;
	p->stacks = NULL;
	if (r == -ETIMEDOUT || r == -EBUSY)
		return diag_set(diag, r, PYP_EXIT_FAILURE,
				"does it map files of a file system that does not answer?",
				"reading the stacks of process %d timed out", target->pid);
	return diag_errno(diag, -r, "cannot read the stacks of process %d", target->pid);
}

static int read_threads(struct parts *p, struct diag *diag)
{
	const uint64_t until_ns = clock_monotonic_ns() + BETWEEN_END_NS;
	const struct target_thread *between;
	int r = read_once(p, diag);

	for (uint64_t ns = BETWEEN_NS; r == 0 && ns <= BETWEEN_MAX_NS; ns *= 2) {
		between = find_between(p);
		if (!between || clock_monotonic_ns() >= until_ns)
			break;
		let_run(p, between, ns, until_ns);
		drop_threads(p);
		r = read_once(p, diag);
	}
	if (r < 0)
		return r;
	(void)inspect_names(p->from->in, &p->names);
	(void)inspect_gils(p->from->in, p->gils);
	return 0;
}

static bool is_in(const struct dump *d, pid_t tid)
{
	for (size_t i = 0; i < d->nthreads; i++)
		if (d->threads[i].tid == tid)
			return true;
	return false;
}

/*
 * Local variables were read after the stack. If the thread's frames have changed meanwhile, they may
 * be those of other calls.
 */
static void check_locals_of(struct dump_thread *t, const struct python_stack *before,
			    const struct python_stack *now)
{
	size_t same = 0;

	for (size_t a = before->n, b = now->n; a && b; same++) {
		const struct pyp_chain_frame *x = &before->frames[--a], *y = &now->frames[--b];

		if (x->frame != y->frame || x->code != y->code || !before->lines || !now->lines ||
		    before->lines[a] != now->lines[b])
			break;
	}
	for (size_t i = 0; i < t->n - same; i++)
		if (t->frames[i].locals_state == DUMP_LOCALS_READ)
			t->frames[i].locals_state = DUMP_LOCALS_MOVING;
}

static void check_locals(struct dump *d, struct parts *p)
{
	static const struct python_stack none;
	struct python_stack *now = NULL;
	size_t n = 0;

	if (inspect_dump(p->from->in, d->pid, &now, &n) < 0)
		n = 0;
	for (size_t i = 0; i < p->nstacks; i++) {
		size_t k = 0;

		while (k < n && now[k].tstate != p->stacks[i].tstate)
			k++;
		check_locals_of(&d->threads[i], &p->stacks[i], k < n ? &now[k] : &none);
	}
	if (n)
		python_stacks_free(now, n);
}

static int fill_name(const struct python_names *names, uint64_t tstate, struct dump_thread *t)
{
	for (size_t i = 0; i < names->n && !t->python_name; i++)
		if (names->v[i].tstate == tstate) {
			t->python_name = strdup(names->v[i].name);
			return t->python_name ? 0 : -ENOMEM;
		}
	return 0;
}

static int fill(struct dump *d, struct parts *p)
{
	int r = 0;

	d->cmdline = strdup(p->from->found.cmdline);
	d->version = strdup(p->from->found.python->version);
	d->file = strdup(p->from->found.python->file);
	d->threads = calloc(p->nstacks + p->nthreads + 1, sizeof(*d->threads));
	if (!d->cmdline || !d->version || !d->file || !d->threads)
		return -ENOMEM;
	for (size_t i = 0; i < p->nstacks && r == 0; i++) {
		struct dump_thread *t = &d->threads[d->nthreads++];

		*t = (struct dump_thread){.tid = p->stacks[i].tid, .python = true};
		t->truncated = p->stacks[i].truncated;
		if (fill_kernel(t, p))
			doing_read(p->from->target, t->tid, p->gils, &t->doing);
		r = fill_name(&p->names, p->stacks[i].tstate, t);
		if (r == 0)
			r = fill_frames(&p->frames, &p->stacks[i], t);
	}
	for (size_t i = 0; i < p->nthreads && r == 0; i++) {
		struct dump_thread *t = &d->threads[d->nthreads];

		if (is_in(d, p->threads[i].tid))
			continue;
		d->nthreads++;
		*t = (struct dump_thread){.tid = p->threads[i].tid};
		(void)fill_kernel(t, p);
		doing_read(p->from->target, t->tid, p->gils, &t->doing);
	}
	if (r == 0 && p->locals)
		check_locals(d, p);
	d->no_threading = p->names.no_threading;
	d->names_moving = p->names.moving;
	if (r == 0)
		r = dump_tasks(&d->tasks, &p->frames, false, p->stacks, p->nstacks);
	if (r == 0)
		r = dump_tasks(&d->greenlets, &p->frames, true, p->stacks, p->nstacks);
	return r;
}

int dumper_take(struct dumper *from, const struct dump_opts *opts, struct dump **ret,
		struct diag *diag)
{
	_cleanup_(dump_freep) struct dump *d = calloc(1, sizeof(*d));
	_cleanup_(parts_deinit) struct parts p = {.from = from, .frames.in = from->in};
	pid_t pid = from->target->pid;
	int r;

	if (!d)
		return diag_errno(diag, ENOMEM, "cannot dump process %d", pid);
	d->pid = pid;
	p.locals = opts && opts->locals;
	p.frames.locals = p.locals ? LOCALS_MAX : 0;
	r = read_threads(&p, diag);
	if (r < 0)
		return r;
	r = fill(d, &p);
	if (r < 0)
		return diag_errno(diag, -r, "cannot dump process %d", pid);
	*ret = TAKE_PTR(d);
	return 0;
}

int dump_take(pid_t pid, const struct dump_opts *opts, struct dump **ret, struct diag *diag)
{
	_cleanup_(dumper_freep) struct dumper *d = NULL;
	int r = dumper_open(pid, &d, diag);

	return r < 0 ? r : dumper_take(d, opts, ret, diag);
}
