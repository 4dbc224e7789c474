// SPDX-License-Identifier: BSD-2-Clause
/* A profile's samples: into the tree, beside it, or before it; and their lines. */
#include "profile/profile_priv.h"

void profile_is_sampled(struct profile *p)
{
	p->beside.wanted = true;
}

void profile_reads_lines(struct profile *p, line_counts_read_fn read, void *ctx)
{
	p->lines.read = read;
	p->lines.ctx = ctx;
}

void profile_refuse_lines(struct profile *p)
{
	line_counts_clear(&p->lines);
	p->lines.read = NULL;
}

/* The stack of a change of memory. */
static void on_memory_stack(struct profile *p, const struct event *e)
{
	struct thread *th = p->tracing ? threads_get(&p->threads, e->tid, e->ts) : NULL;
	uint32_t node = th ? samples_add(&p->rb, &p->codes, th, &e->u.sample) : NODE_NONE;

	if (node != NODE_NONE)
		profile_memory_stack(p, th, node);
}

void profile_on_sample(struct profile *p, const struct event *e)
{
	const struct event_sample *s = &e->u.sample;
	const bool wanted = p->windows ? p->observed_ns : p->tracing,
		   last = s->flags & PYP_SAMPLE_LAST;
	struct thread *th;
	uint32_t node;

	if (s->flags & PYP_SAMPLE_WAIT) {
		profile_on_wait_stack(p, e);
		return;
	}
	if (s->flags & PYP_SAMPLE_MEMORY) {
		on_memory_stack(p, e);
		return;
	}
	p->samples += wanted && last;
	if (wanted)
		line_counts_add(&p->lines, &p->codes, s);
	if (p->beside.wanted) {
		if (wanted)
			samples_by_func_add(&p->beside.trace, &p->codes, s);
		return;
	}
	th = wanted ? threads_get(&p->threads, e->tid, e->ts) : NULL;
	if (!th) {
		p->rb.truncated += wanted && last;
		return;
	}
	node = samples_add(&p->rb, &p->codes, th, s);
	if (node == NODE_NONE)
		return;
	if (p->windows) {
		/* the tree has the figures of a window */
		p->rb.truncated +=
			evidence_sample(&p->evidence, &p->rb.tree, node, s->period, p->stretch) < 0;
		if (!th->live)
			th->node = node;
		return;
	}
	p->rb.tree.nodes[node].self[SNAPSHOT_CPU] += s->period;
	th->total[SNAPSHOT_CPU] += s->period;
	th->last_ts = e->ts > th->last_ts ? e->ts : th->last_ts;
	th->node = node;
	p->events++;
}

void profile_sample_before(struct profile *p, const struct event *e)
{
	if (e->type == PYP_REC_SAMPLE)
		samples_by_func_add(&p->beside.before, &p->codes, &e->u.sample);
	else if (e->type == PYP_REC_CODE || e->type == PYP_REC_STRING)
		profile_event(p, e);
}
