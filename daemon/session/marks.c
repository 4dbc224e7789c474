// SPDX-License-Identifier: BSD-2-Clause
#include "session/marks.h"

#include <math.h>

/* The part of what windows may take that is for marks */
#define PART 0.1
/*
 * A moment ends after this number of hits, or at the latest after this time, after which kept marks that take
 * this little of the budget are given up, too.
 */
#define ALL_HITS  1000u
#define RARE_HITS 3000u
#define MOST_NS	  UINT64_C(1000000000)
#define TOO_FEW	  30
/* Rates over shorter times are not representative; with fewer hits, it is worth waiting longer. */
#define RARE_NS	   UINT64_C(30000000)
#define RARE_LEAST 300u
/* With fewer hits in the first moment, it is uncertain whether an opcode is too frequent. */
#define SURELY 8.0
/* A target that uses less CPU time in a moment is idle. */
#define IDLE_NS UINT64_C(2000000)
/* If the budget allows none, a single one may exceed it by this factor. */
#define ONE 8.0
/*
 * Marks that take more than the budget of one by this factor are given up: all the time since they were
 * attached, or in a moment, as they would leave nothing of the limit for windows then. A trace, which costs more
 * than 30 %, has no limit: beside it, they may take twice as much in a moment.
 */
#define UNFIT	  1.15
#define MOMENT_NS UINT64_C(50000000)
/* The number of times that the second step is repeated without the most frequent ones */
#define REPEATS 6
/* Hits per second of CPU time below which marks measure nothing */
#define RATE_MIN 20.0

void marks_begin(struct marks *m, const struct marks_opts *of)
{
	*m = (struct marks){
		.state = of->n ? MARKS_NEW : MARKS_NONE,
		.n = of->n < PYP_MARKS ? of->n : PYP_MARKS,
		.of = *of,
		.budget = of->bound > 0 ? fmin(MARKS_MOST, PART * of->bound) : MARKS_MOST,
	};
	for (uint32_t i = 0; i < m->n; i++)
		m->v[i] = (uint8_t)i;
}

void marks_expect(struct marks *m, const uint8_t *v, uint32_t n)
{
	if (m->state != MARKS_NEW || m->alone || !n || n > m->of.n)
		return;
	for (uint32_t i = 0; i < n; i++)
		m->v[i] = v[i];
	m->n = n;
	m->expected = true;
}

void marks_attached(struct marks *m, uint64_t now_ns, uint64_t cpu_ns,
		    const uint64_t counts[PYP_MARKS])
{
	if (m->state == MARKS_NEW)
		m->state = m->expected ? MARKS_RARE : MARKS_ALL;
	m->begun_ns = m->last_ns = now_ns;
	m->cpu_ns = m->last_cpu_ns = cpu_ns;
	m->last_hits = 0;
	for (uint32_t i = 0; i < PYP_MARKS; i++)
		m->base[i] = counts[i];
}

static uint64_t hits_of(const struct marks *m, const uint64_t *counts, uint32_t i)
{
	return counts[m->v[i]] - m->base[m->v[i]];
}

uint64_t marks_hits(const struct marks *m, const uint64_t counts[PYP_MARKS])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < m->n; i++)
		sum += hits_of(m, counts, i);
	return sum;
}

bool marks_enough(const struct marks *m, uint64_t now_ns, const uint64_t counts[PYP_MARKS])
{
	uint64_t hits = marks_hits(m, counts), passed = now_ns - m->begun_ns;

	if (passed >= MOST_NS)
		return true;
	if (m->state == MARKS_ALL)
		return hits >= ALL_HITS;
	return hits >= RARE_HITS || (passed >= RARE_NS && hits >= RARE_LEAST);
}

/* Keeps marks with at most so many hits. */
static void keep(struct marks *m, const uint64_t *counts, double most)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n; i++)
		if ((double)hits_of(m, counts, i) <= most)
			m->v[n++] = m->v[i];
	m->n = n;
}

/* Orders v by hits, the most frequent first. */
static void sort(struct marks *m, const uint64_t *counts)
{
	for (uint32_t i = 1; i < m->n; i++)
		for (uint32_t k = i; k > 0 && hits_of(m, counts, k) > hits_of(m, counts, k - 1);
		     k--) {
			uint8_t v = m->v[k];

			m->v[k] = m->v[k - 1];
			m->v[k - 1] = v;
		}
}

/*
 * Keeps the most frequent that the budget allows: the more often a mark is passed, the less it matters
 * where a window ends. Returns the number of their hits.
 */
static uint64_t keep_affordable(struct marks *m, const uint64_t *counts, double most)
{
	uint32_t n = 0, rarest = 0;
	uint64_t hits = 0;

	sort(m, counts);
	for (uint32_t i = 0; i < m->n; i++) {
		uint64_t of = hits_of(m, counts, i);

		rarest = of ? i : rarest;
		if (!of || (double)(hits + of) > most)
			continue;
		hits += of;
		m->v[n++] = m->v[i];
	}
	if (!n && m->n && hits_of(m, counts, rarest) &&
	    (double)hits_of(m, counts, rarest) <= ONE * most) {
		hits = hits_of(m, counts, rarest);
		m->v[n++] = m->v[rarest];
	}
	m->n = n;
	return hits;
}

/*
 * The hits took so long that it is uncertain how much is left for the program: keeps the rarest, which had
 * a tenth of them.
 */
static void keep_rarest(struct marks *m, const uint64_t *counts)
{
	uint64_t all = marks_hits(m, counts), left = all;
	uint32_t from = 0;

	sort(m, counts);
	while (from < m->n && left > all / 10)
		left -= hits_of(m, counts, from++);
	m->n -= from;
	for (uint32_t i = 0; i < m->n; i++)
		m->v[i] = m->v[i + from];
}

/* Returns the number of hits that the budget allows in so much CPU time of the target's own. */
static double affordable(const struct marks *m, double own)
{
	return m->budget * own / m->of.hit_ns;
}

/* The target's own part of so much CPU time. What hits take is known to some percent. */
static double own_ns(const struct marks *m, uint64_t cpu_ns, const uint64_t *counts)
{
	return fmax((double)cpu_ns - m->of.hit_ns * (double)marks_hits(m, counts),
		    (double)cpu_ns / 10);
}

/* cpu_ns: the target's CPU time meanwhile */
static void take_rates(struct marks *m, uint64_t cpu_ns, const uint64_t *counts)
{
	const double taken = m->of.hit_ns * (double)marks_hits(m, counts);
	const double own = own_ns(m, cpu_ns, counts), most = affordable(m, own);

	if (taken > own && m->repeats++ < REPEATS) {
		keep_rarest(m, counts);
		m->state = m->n ? MARKS_RARE : MARKS_NONE;
		return;
	}
	m->state = (double)keep_affordable(m, counts, most) >= RATE_MIN * own / 1e9 ? MARKS_KEPT
										    : MARKS_NONE;
}

void marks_next(struct marks *m, uint64_t cpu_ns, const uint64_t counts[PYP_MARKS])
{
	if (cpu_ns - m->cpu_ns < IDLE_NS && marks_hits(m, counts) < RARE_LEAST) {
		marks_begin(m, &m->of);
		m->wait_cpu_ns = cpu_ns + IDLE_NS;
		return;
	}
	if (m->state != MARKS_ALL) {
		take_rates(m, cpu_ns - m->cpu_ns, counts);
		if (m->state == MARKS_NONE && m->expected) {
			marks_begin(m, &m->of);
			m->alone = true;
		}
		return;
	}
	keep(m, counts, fmax(SURELY, ONE * affordable(m, own_ns(m, cpu_ns - m->cpu_ns, counts))));
	m->state = m->n ? MARKS_RARE : MARKS_NONE;
}

/* Compares the time that hits take with the limit, a moment after the other. */
static bool too_many_lately(struct marks *m, uint64_t now_ns, uint64_t cpu_ns, uint64_t hits)
{
	const double most = (m->of.bound > 0 ? 1 : 2) * UNFIT * ONE * m->budget;
	const double passed = (double)(cpu_ns - m->last_cpu_ns);
	const double taken = m->of.hit_ns * (double)(hits - m->last_hits);

	if (passed < (double)MOMENT_NS)
		return false;
	if (taken > most * passed)
		return true;
	m->last_ns = now_ns;
	m->last_cpu_ns = cpu_ns;
	m->last_hits = hits;
	return false;
}

bool marks_unfit(struct marks *m, uint64_t now_ns, uint64_t cpu_ns,
		 const uint64_t counts[PYP_MARKS])
{
	const uint64_t hits = marks_hits(m, counts);
	const double passed = (double)(cpu_ns - m->cpu_ns), taken = m->of.hit_ns * (double)hits;

	if (m->state != MARKS_KEPT)
		return false;
	if (too_many_lately(m, now_ns, cpu_ns, hits))
		return true;
	if (passed < (double)RARE_NS)
		return false;
	return taken > UNFIT * ONE * m->budget * passed ||
	       (m->of.bound > 0 && taken * TOO_FEW < m->budget * passed &&
		now_ns - m->begun_ns > MOST_NS);
}
