// SPDX-License-Identifier: BSD-2-Clause
/* The last window: see evidence_priv.h. */
#include "accuracy/evidence_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

#define FIRST 256u

int last_reserve(struct evidence_last *last, uint32_t nodes, uint32_t funcs)
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

void last_deinit(struct evidence_last *last)
{
	free(last->nodes);
	free(last->funcs);
	*last = (struct evidence_last){0};
}

void last_clear(struct evidence_last *last)
{
	*last = (struct evidence_last){
		.nodes = last->nodes,
		.funcs = last->funcs,
		.cap = last->cap,
		.funcs_cap = last->funcs_cap,
	};
}

void last_add_node(struct evidence *e, const struct evidence_last_node *seen)
{
	struct evidence_last *last = &e->last;

	last->nodes[last->n] = *seen;
	e->nodes[seen->node].last = ++last->n;
}

void last_add_func(struct evidence_last *last, uint32_t func, double calls)
{
	last->funcs[last->nfuncs++] = (struct evidence_last_func){func, calls};
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

static void raise_marked(struct evidence_marked *p, const struct evidence_last *last,
			 const struct growth *g)
{
	p->calls += g->sum * last->calls;
	p->marks += g->sum * last->marks;
	p->c2 += g->square * last->calls * last->calls;
	p->m2 += g->square * last->marks * last->marks;
	p->cm += g->square * last->calls * last->marks;
}

static void raise_func_marked(struct evidence_func_marked *f, double calls, double marks,
			      const struct growth *g)
{
	f->calls += g->sum * calls;
	f->c2 += g->square * calls * calls;
	f->cm += g->square * calls * marks;
}

static void raise_errors(struct evidence *e, double from, double to)
{
	const struct evidence_last *last = &e->last;
	const struct growth g = growth(from, to);

	e->windows += from <= 1;
	e->size += g.sum * last->cpu;
	e->size2 += g.square * last->cpu * last->cpu;
	if (last->marked)
		raise_marked(&e->progress.marked, last, &g);
	for (uint32_t k = 0; k < last->nfuncs; k++) {
		struct evidence_func *f = &e->funcs[last->funcs[k].func];
		const double calls = last->funcs[k].calls;

		f->sum += g.sum * calls;
		f->square += g.square * calls * calls;
		f->product += g.square * calls * last->cpu;
		if (last->marked)
			raise_func_marked(&f->marked, calls, last->marks, &g);
	}
}

static void raise_nodes(struct evidence *e, double by)
{
	for (uint32_t k = 0; k < e->last.n; k++) {
		const struct evidence_last_node *l = &e->last.nodes[k];
		struct evidence_node *out = &e->nodes[l->node];

		out->calls += by * l->calls;
		out->yields += by * l->yields;
		out->cpu += by * l->cpu;
		out->taken += by * l->taken;
	}
}

void last_raise(struct evidence *e, double ns)
{
	struct evidence_last *last = &e->last;
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
	e->calls += by * last->calls;
	if (!last->marked)
		return;
	e->progress.marked.all_calls += by * last->calls;
	e->progress.marked.all_marks += by * last->marks;
}

void last_move(struct evidence *e, uint32_t from, uint32_t to)
{
	struct evidence_node *source = &e->nodes[from], *target = &e->nodes[to];
	struct evidence_last_node *a, *b;

	if (!source->last)
		return;
	e->last.nodes[source->last - 1].node = to;
	if (!target->last) {
		target->last = source->last;
		return;
	}
	/* Both are in the last window: merge into one entry, so that it can be moved again. */
	a = &e->last.nodes[target->last - 1];
	b = &e->last.nodes[source->last - 1];
	a->calls += b->calls;
	a->yields += b->yields;
	a->cpu += b->cpu;
	a->taken += b->taken;
	*b = (struct evidence_last_node){.node = to};
}
