// SPDX-License-Identifier: BSD-2-Clause
#include "session/choosing.h"

#include "base/clock.h"

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

void choosing_end(struct choosing *c)
{
	if (c->opcodes)
		opcodes_drop(c->opcodes, c);
}

/* Attaching takes some milliseconds, in which the first ones are hit already: they are paid for, too. */
bool choosing_attach(struct choosing *c, struct probe *p, pid_t pid)
{
	struct marks *m = &c->marks;
	uint64_t counts[PYP_MARKS], before, cpu_ns;

	probe_marks_read(p, counts);
	before = sum(counts);
	c->next = false;
	if (probe_marks_attach(p, m->v, m->n) < 0) {
		m->state = MARKS_NONE;
		choosing_end(c);
		return false;
	}
	cpu_ns = cpu_of(pid);
	probe_marks_read(p, counts);
	c->hits += sum(counts) - before;
	marks_attached(m, clock_monotonic_ns(), cpu_ns, counts);
	return true;
}

/*
 * v is being detached, or was. While it was, some marks were attached for longer than others, which does not
 * matter in order to find out which ones are frequent.
 */
static void take_counts(struct choosing *c, struct probe *p)
{
	struct marks *m = &c->marks;
	const bool all = m->state == MARKS_ALL;
	uint64_t counts[PYP_MARKS];

	if (!probe_marks_released(p))
		return;
	probe_marks_read(p, counts);
	c->hits += marks_hits(m, counts);
	marks_next(m, c->end_cpu_ns, all ? counts : c->end_counts);
	c->end_ns = 0;
	c->next = m->state != MARKS_NONE && m->state != MARKS_NEW;
	if (all && c->next && c->opcodes)
		opcodes_learn(c->opcodes, c, m->v, m->n);
	choosing_end(c);
}

/* Returns whether the first step may begin, or instead of it the second. */
static bool may_begin(struct choosing *c)
{
	struct opcodes *o = c->opcodes;

	if (!o || c->marks.alone)
		return true;
	if (o->known)
		marks_expect(&c->marks, o->v, o->n);
	return o->known || opcodes_ask(o, c);
}

static void look(struct choosing *c, struct probe *p, pid_t pid)
{
	probe_marks_read(p, c->end_counts);
	if (!marks_enough(&c->marks, clock_monotonic_ns(), c->end_counts))
		return;
	c->end_cpu_ns = cpu_of(pid);
	c->end_ns = clock_monotonic_ns();
	probe_marks_release(p);
}

bool choosing_turn(struct choosing *c, struct probe *p, pid_t pid, bool affords)
{
	const struct marks *m = &c->marks;

	if (c->end_ns) {
		take_counts(c, p);
		if (!c->next)
			return false;
	} else if (!c->next && m->state != MARKS_NEW) {
		look(c, p, pid);
		return false;
	}
	if (m->state != MARKS_KEPT && !affords)
		return false;
	if (m->state == MARKS_NEW && !may_begin(c))
		return false;
	return choosing_attach(c, p, pid) && m->state == MARKS_KEPT;
}

bool choosing_waits(const struct choosing *c, uint64_t cpu_ns)
{
	return c->marks.state == MARKS_NEW && cpu_ns < c->marks.wait_cpu_ns;
}

uint64_t choosing_kept_hits(const struct choosing *c, const struct probe *p)
{
	uint64_t counts[PYP_MARKS];

	if (c->marks.state != MARKS_KEPT || !p)
		return 0;
	probe_marks_read(p, counts);
	return marks_hits(&c->marks, counts);
}
