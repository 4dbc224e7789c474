// SPDX-License-Identifier: BSD-2-Clause
/* The last window: see estimate_priv.h. */
#include "estimate/estimate_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

#define FIRST 256u

int last_reserve(struct estimate_last *last, uint32_t nodes, uint32_t funcs)
{
	void *v = last->nodes;

	if (nodes)
		v = array_room(v, &last->cap, nodes, FIRST, sizeof(*last->nodes));
	if (nodes && !v)
		return -ENOMEM;
	last->nodes = v;
	v = last->funcs;
	if (funcs)
		v = array_room(v, &last->funcs_cap, funcs, FIRST, sizeof(*last->funcs));
	if (funcs && !v)
		return -ENOMEM;
	last->funcs = v;
	return 0;
}

void last_deinit(struct estimate_last *last)
{
	free(last->nodes);
	free(last->funcs);
	*last = (struct estimate_last){0};
}

void last_clear(struct estimate_last *last)
{
	last_begin(last, 0, 0, 0);
}

void last_begin(struct estimate_last *last, double length_ns, double cpu, double wait)
{
	last->n = last->nfuncs = 0;
	last->length = length_ns;
	last->weight = 0;
	last->cpu = cpu;
	last->wait = wait;
	last->taken = last->expected = 0;
}

void last_add_node(struct estimate *e, uint32_t node, const struct estimate_node *seen)
{
	struct estimate_last *last = &e->last;

	last->nodes[last->n] = (struct estimate_last_node){node, *seen};
	e->nodes[node].last = ++last->n;
}

void last_add_func(struct estimate_last *last, uint32_t func, const double z[SNAPSHOT_FIGURES])
{
	struct estimate_last_func *f = &last->funcs[last->nfuncs++];

	f->func = func;
	for (int i = 0; i < SNAPSHOT_FIGURES; i++)
		f->z[i] = z[i];
}

/* Growth of the sums of z and z^2. A window that represents only itself has no error. */
struct growth {
	double sum, square;
};

static struct growth growth(double from, double to)
{
	return (struct growth){
		.sum = to - (from > 1 ? from : 0),
		.square = to * (to - 1) - (from > 1 ? from * (from - 1) : 0),
	};
}

static void raise_marked(struct estimate_marked *p, const struct estimate_last *last,
			 const struct growth *g)
{
	p->calls += g->sum * last->calls;
	p->marks += g->sum * last->marks;
	p->cpu += g->sum * last->cpu;
	p->c2 += g->square * last->calls * last->calls;
	p->m2 += g->square * last->marks * last->marks;
	p->cm += g->square * last->calls * last->marks;
	p->cpu2 += g->square * last->cpu * last->cpu;
	p->c_cpu += g->square * last->calls * last->cpu;
}

static void raise_func_marked(struct estimate_func_marked *f, double calls, double marks,
			      const struct growth *g)
{
	f->calls += g->sum * calls;
	f->c2 += g->square * calls * calls;
	f->cm += g->square * calls * marks;
}

static void raise_errors(struct estimate *e, double from, double to)
{
	const struct estimate_last *last = &e->last;
	const double size[2] = {last->cpu, last->cpu + last->wait};
	const struct growth g = growth(from, to);

	e->windows += from <= 1;
	for (int i = 0; i < 2; i++) {
		e->size[i] += g.sum * size[i];
		e->size2[i] += g.square * size[i] * size[i];
	}
	e->length += g.sum * last->length;
	e->length2 += g.square * last->length * last->length;
	e->length_cpu += g.square * last->length * last->cpu;
	if (last->marked)
		raise_marked(&e->progress.marked, last, &g);
	for (uint32_t k = 0; k < last->nfuncs; k++) {
		struct estimate_func *f = &e->funcs[last->funcs[k].func];
		const double *z = last->funcs[k].z;

		for (int i = 0; i < SNAPSHOT_FIGURES; i++) {
			bool wall = i == SNAPSHOT_TOT_WALL || i == SNAPSHOT_CUM_WALL;

			f->sum[i] += g.sum * z[i];
			f->square[i] += g.square * z[i] * z[i];
			f->product[i] += g.square * z[i] * size[wall];
		}
		if (last->marked)
			raise_func_marked(&f->marked, z[SNAPSHOT_CALLS], last->marks, &g);
	}
}

static void raise_nodes(struct estimate *e, double by)
{
	for (uint32_t k = 0; k < e->last.n; k++) {
		const struct estimate_last_node *l = &e->last.nodes[k];
		struct estimate_node *out = &e->nodes[l->node];

		out->calls += by * l->seen.calls;
		out->yields += by * l->seen.yields;
		out->cpu += by * l->seen.cpu;
		out->wait += by * l->seen.wait;
		out->taken += by * l->seen.taken;
	}
}

void last_raise(struct estimate *e, double ns)
{
	struct estimate_last *last = &e->last;
	double from = last->weight, by;

	if (ns <= 0 || last->length <= 0)
		return;
	by = ns / last->length;
	last->weight += by;
	raise_nodes(e, by);
	if (last->weight > 1)
		raise_errors(e, from, last->weight);
	e->all_ns += ns;
	e->all_cpu += by * last->cpu;
	e->expected += by * last->expected;
	e->taken += by * last->taken;
	e->calls += by * last->calls;
	e->missed += by * last->missed;
	if (!last->marked)
		return;
	e->progress.marked.all_calls += by * last->calls;
	e->progress.marked.all_marks += by * last->marks;
}

void last_move(struct estimate *e, uint32_t from, uint32_t to)
{
	struct estimate_node *a, *b, *source = &e->nodes[from];
	struct estimate_node *target = &e->nodes[to];

	if (!source->last)
		return;
	e->last.nodes[source->last - 1].node = to;
	if (!target->last) {
		target->last = source->last;
		return;
	}
	/* Both are in the last window: merge into one entry, so that it can be moved again. */
	a = &e->last.nodes[target->last - 1].seen;
	b = &e->last.nodes[source->last - 1].seen;
	a->calls += b->calls;
	a->yields += b->yields;
	a->cpu += b->cpu;
	a->wait += b->wait;
	a->taken += b->taken;
	*b = (struct estimate_node){0};
}
