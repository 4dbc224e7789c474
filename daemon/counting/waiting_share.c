// SPDX-License-Identifier: BSD-2-Clause
/*
 * Distributes waiting over contexts: see waiting.h. What is known stays where it is. The rest of each
 * thread and reason is divided among the contexts in proportion to their weights, so that it adds up
 * exactly; without weights, in proportion to what is known, and its error may be all of it. If that is
 * nothing either, it is the thread's "(waits not sampled)".
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "counting/waiting.h"
#include "stack/waits.h"

/* One thread. */
struct division {
	uint64_t left[WAITS];	/* waiting to be distributed */
	uint64_t known[WAITS];	/* what is known of all contexts, also of waits that were traced */
	uint64_t weight[WAITS]; /* sum of the weights, or of what is known */
	bool by_known[WAITS];
	uint64_t seen[WAITS];  /* weights so far ... */
	uint64_t given[WAITS]; /* ... and what was given for them */
};

struct sharing {
	const struct waiting *w;
	const struct threads *threads;
	uint64_t now_ns;
	struct division *divisions; /* per index in the table of threads */
	uint32_t *owner;	    /* per node: index of its thread; NODE_NONE: none */
	struct waiting_shares *out;
};

void waiting_shares_deinit(struct waiting_shares *s)
{
	for (int c = 0; c < COLUMNS; c++)
		free(s->of[c]);
	free(s->sum);
	free(s->total);
	free(s->estimated);
	free(s->variance);
}

static int add(struct sharing *s, uint32_t node, enum wait_reason why, uint64_t ns)
{
	const int columns[2] = {waits_column(why), wait_is_io(why) ? COLUMN_io : -1};

	for (int i = 0; i < 2 && ns; i++) {
		uint64_t **of = columns[i] < 0 ? NULL : &s->out->of[columns[i]];

		if (of && !*of)
			*of = calloc((size_t)s->w->tree->n + 1, sizeof(**of));
		if (of && !*of)
			return -ENOMEM;
		if (of)
			(*of)[node] += ns;
	}
	s->out->sum[node] += ns;
	s->out->total[s->owner[node]] += ns;
	return 0;
}

static void find_owners(struct sharing *s)
{
	const struct calltree *t = s->w->tree;

	memset(s->owner, 0xff, t->n * sizeof(*s->owner));
	for (uint32_t i = 0; i < s->threads->n; i++)
		s->owner[s->threads->v[i]->root] = i;
	for (uint32_t i = 0; i < t->n; i++)
		if (t->parents[i] != NODE_NONE)
			s->owner[i] = s->owner[t->parents[i]];
}

static uint64_t weight_of(const struct sharing *s, uint32_t node, int why)
{
	return node < s->w->room && s->w->weights[why] ? s->w->weights[why][node] : 0;
}

static uint64_t known_of(const struct sharing *s, uint32_t node, int why)
{
	const uint64_t *known = s->w->tree->columns[waits_column((enum wait_reason)why)];

	return known ? known[node] : 0;
}

/* What is known, and the sums of weights. */
static int take_node(struct sharing *s, uint32_t node)
{
	struct division *d = &s->divisions[s->owner[node]];

	for (int why = 0; why < WAITS; why++) {
		if (add(s, node, (enum wait_reason)why, known_of(s, node, why)))
			return -ENOMEM;
		d->known[why] += known_of(s, node, why);
		d->weight[why] += weight_of(s, node, why);
	}
	return 0;
}

static int take_thread(struct sharing *s, uint32_t i)
{
	const struct thread *th = s->threads->v[i];
	const struct thread_waiting *tw = &th->waiting;
	struct division *d = &s->divisions[i];
	uint64_t ns = tw->off && s->now_ns > tw->since ? s->now_ns - tw->since : 0;

	for (int why = 0; why < WAITS; why++)
		d->left[why] = tw->total[why] - tw->placed[why];
	if (!ns)
		return 0;
	if (tw->node != NODE_NONE && tw->one_in <= 1)
		return add(s, tw->node, (enum wait_reason)th->wait.why, ns);
	d->left[th->wait.why] += ns;
	return 0;
}

/* Decides by what to divide the rest. */
static int share_rest(struct sharing *s, uint32_t i)
{
	const struct thread *th = s->threads->v[i];
	struct division *d = &s->divisions[i];

	for (int why = 0; why < WAITS; why++) {
		if (!d->left[why] || d->weight[why])
			continue;
		d->by_known[why] = true;
		d->weight[why] = d->known[why];
		if (!d->weight[why] &&
		    add(s, th->waiting.rest, (enum wait_reason)why, d->left[why]))
			return -ENOMEM;
	}
	return 0;
}

/* Returns what a weight stands for. Rounding errors do not add up. */
static uint64_t portion(struct division *d, int why, uint64_t weight)
{
	uint64_t all;

	d->seen[why] += weight;
	all = (uint64_t)((unsigned __int128)d->left[why] * d->seen[why] / d->weight[why]);
	all -= d->given[why];
	d->given[why] += all;
	return all;
}

static int share_node(struct sharing *s, uint32_t node)
{
	struct division *d = &s->divisions[s->owner[node]];
	double weights = 0, shared = 0, scale;

	for (int why = 0; why < WAITS; why++) {
		bool by_known = d->by_known[why];
		uint64_t weight = by_known ? known_of(s, node, why) : weight_of(s, node, why), ns;

		if (!weight || !d->weight[why])
			continue;
		ns = portion(d, why, weight);
		if (add(s, node, (enum wait_reason)why, ns))
			return -ENOMEM;
		s->out->estimated[node] += (double)ns;
		if (by_known)
			s->out->variance[node] += (double)ns * (double)d->left[why];
		weights += by_known ? 0 : (double)weight;
		shared += by_known ? 0 : (double)ns;
	}
	scale = weights > 0 ? shared / weights : 0;
	if (scale > 0)
		s->out->variance[node] += s->w->variances[node] * scale * scale;
	return 0;
}

static int share(struct sharing *s)
{
	const struct calltree *t = s->w->tree;
	int err = 0;

	for (uint32_t i = 0; i < t->n && !err; i++)
		if (s->owner[i] != NODE_NONE)
			err = take_node(s, i);
	for (uint32_t i = 0; i < s->threads->n && !err; i++)
		err = take_thread(s, i);
	for (uint32_t i = 0; i < s->threads->n && !err; i++)
		err = share_rest(s, i);
	for (uint32_t i = 0; i < t->n && !err; i++)
		if (s->owner[i] != NODE_NONE)
			err = share_node(s, i);
	return err;
}

int waiting_share(const struct waiting *w, const struct threads *threads, uint64_t now_ns,
		  struct waiting_shares *ret)
{
	_cleanup_free_ struct division *divisions = NULL;
	_cleanup_free_ uint32_t *owner = NULL;
	struct sharing s = {.w = w, .threads = threads, .now_ns = now_ns, .out = ret};
	size_t n;

	if (!w->kept)
		return 0;
	n = (size_t)w->tree->n + 1;
	divisions = calloc((size_t)threads->n + 1, sizeof(*divisions));
	owner = calloc(n, sizeof(*owner));
	ret->sum = calloc(n, sizeof(*ret->sum));
	ret->total = calloc((size_t)threads->n + 1, sizeof(*ret->total));
	ret->estimated = calloc(n, sizeof(*ret->estimated));
	ret->variance = calloc(n, sizeof(*ret->variance));
	if (!divisions || !owner || !ret->sum || !ret->total || !ret->estimated || !ret->variance)
		return -ENOMEM;
	s.divisions = divisions;
	s.owner = owner;
	find_owners(&s);
	return share(&s);
}
