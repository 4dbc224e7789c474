// SPDX-License-Identifier: BSD-2-Clause
#include "session/choosing.h"

#include "base/clock.h"

static uint64_t cpu_of(pid_t pid)
{
	uint64_t ns = 0;

	(void)clock_process_cpu_ns(pid, &ns);
	return ns;
}

bool choosing_attach(struct choosing *c, struct probe *p, pid_t pid)
{
	struct marks *m = &c->marks;
	uint64_t counts[PYP_MARKS], cpu_ns;

	if (probe_marks_attach(p, m->v, m->n) < 0) {
		m->state = MARKS_NONE;
		return false;
	}
	/* Attaching takes some milliseconds, in which there are few hits. */
	cpu_ns = cpu_of(pid);
	probe_marks_read(p, counts);
	marks_attached(m, clock_monotonic_ns(), cpu_ns, counts);
	return true;
}

/* v is being detached, or was. */
static bool go_on(struct choosing *c, struct probe *p, pid_t pid)
{
	struct marks *m = &c->marks;
	uint64_t counts[PYP_MARKS];

	if (!probe_marks_released(p))
		return false;
	probe_marks_read(p, counts);
	c->hits += marks_hits(m, counts);
	marks_next(m, c->end_cpu_ns, counts);
	c->end_ns = 0;
	if (m->state == MARKS_NONE || m->state == MARKS_NEW)
		return false;
	return choosing_attach(c, p, pid) && m->state == MARKS_KEPT;
}

bool choosing_turn(struct choosing *c, struct probe *p, pid_t pid)
{
	uint64_t counts[PYP_MARKS];

	if (c->marks.state == MARKS_NEW) {
		(void)choosing_attach(c, p, pid);
		return false;
	}
	if (c->end_ns)
		return go_on(c, p, pid);
	probe_marks_read(p, counts);
	if (marks_enough(&c->marks, clock_monotonic_ns(), counts)) {
		c->end_cpu_ns = cpu_of(pid);
		c->end_ns = clock_monotonic_ns();
		probe_marks_release(p);
	}
	return false;
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
