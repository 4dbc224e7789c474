// SPDX-License-Identifier: BSD-2-Clause
/* Takes a dump: see dump.h. */
#include "dump/dump.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "dump/doing.h"
#include "inspect/inspect.h"
#include "target/target.h"

/* The names of code objects, each read once per dump. */
struct names {
	struct map at; /* address → index */
	struct code_names *v;
	uint32_t n, room;
};

static void names_deinit(struct names *names)
{
	for (uint32_t i = 0; i < names->n; i++)
		code_names_deinit(&names->v[i]);
	free(names->v);
	map_deinit(&names->at);
}

static const struct code_names *names_of(struct names *names, struct inspect *in, uint64_t code)
{
	static const struct code_names unknown;
	uint32_t at;

	if (map_get(&names->at, code, &at))
		return &names->v[at];
	if (names->n == names->room) {
		uint32_t want = names->room ? 2 * names->room : 64;
		struct code_names *v = reallocarray(names->v, want, sizeof(*v));

		if (!v)
			return &unknown;
		names->v = v;
		names->room = want;
	}
	names->v[names->n] = unknown;
	(void)inspect_code(in, code, &names->v[names->n]);
	(void)map_put(&names->at, code, names->n);
	return &names->v[names->n++];
}

static char *shown(const char *name)
{
	return strdup(name ? name : "?");
}

/*
 * A frame without a code object was reached through an invalid pointer, because the stack changed
 * during the read. All frames inside of it are then uncertain as well, even if all readings agree.
 */
static void mark_moving(struct dump_thread *t, size_t to)
{
	for (size_t i = 0; i <= to; i++)
		t->frames[i].moving = true;
}

static int fill_frames(struct names *names, struct inspect *in, const struct python_stack *st,
		       struct dump_thread *t)
{
	t->frames = calloc(st->n + 1, sizeof(*t->frames));
	if (!t->frames)
		return -ENOMEM;
	for (size_t i = 0; i < st->n; i++) {
		const struct code_names *c = names_of(names, in, st->frames[i].code);
		struct dump_frame *f = &t->frames[t->n++];

		f->filename = shown(c->filename);
		f->name = shown(c->qualname ? c->qualname : c->name);
		f->line = st->lines ? st->lines[i] : 0;
		f->moving = i < st->n - st->stable;
		if (!f->filename || !f->name)
			return -ENOMEM;
		if (!c->name)
			mark_moving(t, i);
	}
	return 0;
}

/*
 * Adds the kernel's data about the thread. Returns false if the process has no thread with this id.
 */
static bool fill_kernel(struct dump_thread *t, const struct target_thread *v, size_t n)
{
	t->state = '?';
	for (size_t i = 0; i < n; i++) {
		if (v[i].tid != t->tid)
			continue;
		memcpy(t->name, v[i].comm, sizeof(t->name));
		t->state = v[i].state;
		return true;
	}
	return false;
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
	struct names names;
};

static void parts_deinit(struct parts *p)
{
	names_deinit(&p->names);
	free(p->threads);
	python_stacks_free(p->stacks, p->nstacks);
}

int dumper_open(pid_t pid, struct dumper **ret, struct diag *diag)
{
	_cleanup_(dumper_freep) struct dumper *d = calloc(1, sizeof(*d));
	struct inspect_opts io = {.check = true};
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

static int read_threads(struct parts *p, struct diag *diag)
{
	struct target *target = p->from->target;
	int r = inspect_dump(p->from->in, target->pid, &p->stacks, &p->nstacks);

	if (r == 0)
		return target_threads(target, &p->threads, &p->nthreads, diag);
	p->nstacks = 0;
	p->stacks = NULL;
	return diag_errno(diag, -r, "cannot read the stacks of process %d", target->pid);
}

static bool is_in(const struct dump *d, pid_t tid)
{
	for (size_t i = 0; i < d->nthreads; i++)
		if (d->threads[i].tid == tid)
			return true;
	return false;
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
		if (fill_kernel(t, p->threads, p->nthreads))
			doing_read(d->pid, t->tid, t->doing, sizeof(t->doing));
		r = fill_frames(&p->names, p->from->in, &p->stacks[i], t);
	}
	for (size_t i = 0; i < p->nthreads && r == 0; i++) {
		struct dump_thread *t = &d->threads[d->nthreads];

		if (is_in(d, p->threads[i].tid))
			continue;
		d->nthreads++;
		*t = (struct dump_thread){.tid = p->threads[i].tid};
		(void)fill_kernel(t, p->threads, p->nthreads);
		doing_read(d->pid, t->tid, t->doing, sizeof(t->doing));
	}
	return r;
}

int dumper_take(struct dumper *from, struct dump **ret, struct diag *diag)
{
	_cleanup_(dump_freep) struct dump *d = calloc(1, sizeof(*d));
	_cleanup_(parts_deinit) struct parts p = {.from = from};
	pid_t pid = from->target->pid;
	int r;

	if (!d)
		return diag_errno(diag, ENOMEM, "cannot dump process %d", pid);
	d->pid = pid;
	r = read_threads(&p, diag);
	if (r < 0)
		return r;
	r = fill(d, &p);
	if (r < 0)
		return diag_errno(diag, -r, "cannot dump process %d", pid);
	*ret = TAKE_PTR(d);
	return 0;
}

int dump_take(pid_t pid, struct dump **ret, struct diag *diag)
{
	_cleanup_(dumper_freep) struct dumper *d = NULL;
	int r = dumper_open(pid, &d, diag);

	return r < 0 ? r : dumper_take(d, ret, diag);
}

void dump_free(struct dump *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nthreads; i++) {
		struct dump_thread *t = &d->threads[i];

		for (size_t k = 0; k < t->n; k++) {
			free(t->frames[k].filename);
			free(t->frames[k].name);
		}
		free(t->frames);
	}
	free(d->threads);
	free(d->cmdline);
	free(d->version);
	free(d->file);
	free(d);
}
