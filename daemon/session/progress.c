// SPDX-License-Identifier: BSD-2-Clause
#include "session/progress.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* ---- what the processes of a program know ---- */

struct opcodes *opcodes_share(struct opcodes *o)
{
	if (o)
		o->users++;
	return o;
}

void opcodes_free(struct opcodes *o)
{
	if (o && --o->users == 0)
		free(o);
}

struct opcodes *opcodes_of(struct opcodes *o, const struct plan *plan)
{
	const uint64_t first = plan->nmarks ? plan->marks[0].vaddr : 0;

	if (o && o->first == first && o->all == plan->nmarks)
		return o;
	opcodes_free(o);
	o = calloc(1, sizeof(*o));
	if (o)
		*o = (struct opcodes){.users = 1, .first = first, .all = plan->nmarks};
	return o;
}

bool opcodes_ask(struct opcodes *o, const void *by)
{
	if (o->known || (o->by && o->by != by))
		return false;
	o->by = by;
	return true;
}

void opcodes_learn(struct opcodes *o, const void *by, const uint8_t *v, uint32_t n)
{
	if (o->by != by || n > PYP_MARKS)
		return;
	memcpy(o->v, v, n * sizeof(*v));
	o->n = n;
	o->known = n > 0;
	o->by = NULL;
}

void opcodes_drop(struct opcodes *o, const void *by)
{
	if (o->by == by)
		o->by = NULL;
}

/* ---- choosing ---- */

static uint64_t cpu_of(pid_t pid)
{
	uint64_t ns = 0;

	(void)clock_process_cpu_ns(pid, &ns);
	return ns;
}

static uint64_t sum(const uint64_t counts[PYP_MARKS])
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < PYP_MARKS; i++)
		all += counts[i];
	return all;
}

void progress_begin(struct progress *g, struct opcodes *opcodes, const struct marks_opts *of)
{
	*g = (struct progress){.hits = g->hits, .opcodes = opcodes};
	marks_begin(&g->marks, of);
}

void progress_end(struct progress *g)
{
	if (g->opcodes)
		opcodes_drop(g->opcodes, g);
}

/* Attaching takes some milliseconds, in which the first ones are hit already: they are paid for, too. */
bool progress_attach(struct progress *g, struct probe *p, pid_t pid)
{
	struct marks *m = &g->marks;
	uint64_t counts[PYP_MARKS], before, cpu_ns;

	probe_marks_read(p, counts);
	before = sum(counts);
	g->next = false;
	if (probe_marks_attach(p, m->v, m->n) < 0) {
		m->state = MARKS_NONE;
		progress_end(g);
		return false;
	}
	cpu_ns = cpu_of(pid);
	probe_marks_read(p, counts);
	g->hits += sum(counts) - before;
	marks_attached(m, clock_monotonic_ns(), cpu_ns, counts);
	return true;
}

/*
 * v is being detached, or was. While it was, some marks were attached for longer than others, which does not
 * matter in order to find out which ones are frequent.
 */
static void take_counts(struct progress *g, struct probe *p)
{
	struct marks *m = &g->marks;
	const bool all = m->state == MARKS_ALL;
	uint64_t counts[PYP_MARKS];

	if (!probe_marks_released(p))
		return;
	probe_marks_read(p, counts);
	g->hits += marks_hits(m, counts);
	marks_next(m, g->end_cpu_ns, all ? counts : g->end_counts);
	g->end_ns = 0;
	g->next = m->state != MARKS_NONE && m->state != MARKS_NEW;
	if (all && g->next && g->opcodes)
		opcodes_learn(g->opcodes, g, m->v, m->n);
	progress_end(g);
}

/* Returns whether the first step may begin, or instead of it the second. */
static bool may_begin(struct progress *g)
{
	struct opcodes *o = g->opcodes;

	if (!o || g->marks.alone)
		return true;
	if (o->known)
		marks_expect(&g->marks, o->v, o->n);
	return o->known || opcodes_ask(o, g);
}

static void look(struct progress *g, struct probe *p, pid_t pid)
{
	probe_marks_read(p, g->end_counts);
	if (!marks_enough(&g->marks, clock_monotonic_ns(), g->end_counts))
		return;
	g->end_cpu_ns = cpu_of(pid);
	g->end_ns = clock_monotonic_ns();
	probe_marks_release(p);
}

bool progress_chooses(const struct progress *g, uint64_t cpu_ns)
{
	const struct marks *m = &g->marks;

	return m->state != MARKS_KEPT && m->state != MARKS_NONE &&
	       (m->state != MARKS_NEW || cpu_ns >= m->wait_cpu_ns);
}

bool progress_turn(struct progress *g, struct probe *p, pid_t pid, bool affords)
{
	const struct marks *m = &g->marks;

	if (g->end_ns) {
		take_counts(g, p);
		if (!g->next)
			return false;
	} else if (!g->next && m->state != MARKS_NEW) {
		look(g, p, pid);
		return false;
	}
	if (m->state != MARKS_KEPT && !affords)
		return false;
	if (m->state == MARKS_NEW && !may_begin(g))
		return false;
	return progress_attach(g, p, pid) && m->state == MARKS_KEPT;
}

/* ---- counting ---- */

bool progress_unfit(struct progress *g, struct probe *p, uint64_t cpu_ns)
{
	uint64_t counts[PYP_MARKS];

	if (g->marks.state != MARKS_KEPT || g->unfit)
		return g->unfit;
	probe_marks_read(p, counts);
	g->unfit = marks_unfit(&g->marks, clock_monotonic_ns(), cpu_ns, counts);
	return g->unfit;
}

uint64_t progress_hits(const struct progress *g, const struct probe *p)
{
	uint64_t counts[PYP_MARKS];

	if (g->marks.state != MARKS_KEPT || !p)
		return 0;
	probe_marks_read(p, counts);
	return marks_hits(&g->marks, counts);
}

double progress_ns(const struct progress *g, const struct probe *p)
{
	return g->marks.of.hit_ns * (double)(g->hits + progress_hits(g, p));
}
