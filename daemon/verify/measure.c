// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measuring the cost of events
 *
 * A report needs the probes' share of the time between two events: the part of the first hit after
 * its clock was read, plus the part of the second hit before that. It equals the time between the
 * events minus the time that the program itself takes, which the same interpreter measures by
 * running the same loops without probes.
 *
 * Costs depend on the code between hits, because a trap evicts caches and indirect branch
 * predictions. Therefore neither a loop in C nor an empty function is representative; the called
 * function has a body.
 *
 * Machines with other users vary in speed, even during this measurement. So each round is relative
 * to its own reference (base/cost.h), and to the present speed of the same loop without calls.
 *
 * There are three loops: calls of a function one after the other; nested calls; items of a
 * generator. With E and L for the cost of an entry and an end, before (b) and after (a) the clock
 * is read, they give:
 *
 *    between entry and end of a call:    Ea + Lb
 *    from there to the next call:        La + Eb
 *    from a call to a nested call:       Ea + Eb
 *    from its end to its caller's end:   La + Lb
 *
 * Creating and clearing the frame of a call happens before its entry event and after its end event,
 * and is attributed to the caller. (Of the instructions that a call adds to a loop, counted on nine
 * builds from 3.6 to 3.13, -0.18 to 0.20 were between entry and end, 0.03 on average.)
 *
 * The last two sums equal the first two, but measurements differ slightly; then the first two are
 * used, as most calls are like these. The split of a cost between the two sides of its clock
 * remains undetermined; all sums are the same for any choice.
 */
#include "verify/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/median.h"
#include "event/decode.h"
#include "probe/probe.h"
#include "verify/scratch.h"

#define RING_BYTES (1u << 20)
#define ROUNDS	   MEASURE_ROUNDS
#define LOOPS	   1000 /* per loop and round; a multiple of NEST */
#define NEST	   20
#define PAUSE_NS   2000000u /* between rounds, so that a disturbance affects only one */
/* Where traps are slow, rounds take ten times as long. Half of them have to do then: the target may need
 * that CPU. */
#define ROUNDS_MIN (ROUNDS / 2)
#define ENOUGH_NS  UINT64_C(500000000)

/* The fraction of a nest level's time before the nested call: 0.68 to 0.76 of its instructions, on
 * four builds from 3.8 to 3.13 */
#define DOWN 0.73

#define DONE "done "
/* outliers: times the median */
#define FAR_TOO_LONG 5

#define STR_(x) #x
#define STR(x)	STR_(x)

/* clang-format off */
static const char script_measure[] =
	"import posix, time\n"
	"def small(n):\n"
	"    for _ in range(3): n = n * 3 & 0xffff\n"
	"    return n\n"
	"def loop(n):\n"
	"    for i in range(n): pass\n"
	"def body(n):\n"
	"    for i in range(n):\n"
	"        m = i\n"
	"        for _ in range(3): m = m * 3 & 0xffff\n"
	"def pairs(n):\n"
	"    for i in range(n): small(i)\n"
	"def deep(n):\n"
	"    if n: deep(n - 1)\n"
	"def nest(n):\n"
	"    for i in range(n // " STR(NEST) "): deep(" STR(NEST) " - 1)\n"
	"def gen(n):\n"
	"    for i in range(n): yield i\n"
	"def yields(n):\n"
	"    for i in gen(n): pass\n"
	"def say(s): posix.write(1, s.encode() + b'\\n')\n"
	"def wait(): return posix.read(0, 1)\n"
	"def passes(f):\n"
	"    t = time.perf_counter(); f(" STR(LOOPS) ")\n"
	"    return (time.perf_counter() - t) * 1e12 / " STR(LOOPS) "\n"
	"loops = loop, body, pairs, nest, yields\n"
	"for f in loops: f(2000)\n"
	/* Interleaved, so that disturbances affect all of them. */
	"found = [[passes(f) for f in loops] for i in range(41)]\n"
	"say('ready %d %d %d %d %d' % tuple([sorted(of)[20] for of in zip(*found)]))\n"
	"while True:\n"
	"    for f in pairs, nest, yields:\n"
	"        if not wait(): posix._exit(0)\n"
	"        f(" STR(LOOPS) "); say('" DONE "%d' % passes(body))\n";
/* clang-format on */

/* ---- intervals between events ------------------------------------------------------------ */

/* Durations of one interval in one round, ns */
struct sample_set {
	double v[2 * LOOPS];
	uint32_t n;
};

struct measuring {
	enum measure_phase phase;
	uint8_t last_type;
	uint64_t last_ts;
	struct sample_set times[INTERVALS];
	struct measure_means untraced; /* without intervals */
	/* Of the current round: the reference, and the time of body */
	struct probe_latency latency; /* in pairs */
	double bodies;
	struct cost rounds[ROUNDS];
	uint32_t n;
};

static int interval_of(uint8_t first, uint8_t second)
{
	static const int8_t of[4][4] = {
		/* second event: enter, leave, yield */
		[1] = {-1, ENTER_ENTER, ENTER_LEAVE, ENTER_YIELD},
		[2] = {-1, LEAVE_ENTER, LEAVE_LEAVE, -1},
		[3] = {-1, YIELD_ENTER, -1, -1},
	};
	static const uint8_t row[PYP_REC_MAX] = {
		[PYP_REC_ENTER] = 1, [PYP_REC_LEAVE] = 2, [PYP_REC_YIELD] = 3};

	return row[first] && row[second] ? of[row[first]][row[second]] : -1;
}

static void on_record(void *ctx, const void *data, size_t size)
{
	struct measuring *m = ctx;
	struct sample_set *set;
	struct event e;
	int which;

	if (decode_event(data, size, &e) != DECODE_OK)
		return;
	/* Intervals next to a context switch are not used. */
	which = interval_of(m->last_type, e.type);
	if (which >= 0 && which / 2 == (int)m->phase) {
		set = &m->times[which];
		if (set->n < sizeof(set->v) / sizeof(*set->v))
			set->v[set->n++] = (double)(e.ts - m->last_ts);
	}
	m->last_type = e.type;
	m->last_ts = e.ts;
}

/* The mean without outliers, which were interrupted or belong to the loop's start and end.
 * Moderately long ones count. 0: too few. */
static double set_mean(struct sample_set *s)
{
	double sum = 0, most;
	uint32_t n = 0;

	if (s->n < LOOPS / 2)
		return 0;
	most = FAR_TOO_LONG * median(s->v, s->n);
	while (n < s->n && s->v[n] <= most)
		sum += s->v[n++];
	return sum / n;
}

static uint32_t net(double whole, double passes)
{
	return whole > passes ? (uint32_t)(whole - passes + 0.5) : 0;
}

static uint32_t less(uint32_t whole, uint32_t part)
{
	return whole > part ? whole - part : 0;
}

struct cost measure_costs_of(const struct measure_means *m)
{
	double own = m->body - m->loop; /* time of the function's body */
	double inside = m->between[ENTER_LEAVE] - own;
	double outside = m->between[LEAVE_ENTER] - (m->untraced[PHASE_PAIRS] - own);
	double down = m->between[ENTER_ENTER] - DOWN * m->untraced[PHASE_NEST];
	double up = m->between[LEAVE_LEAVE] - (1 - DOWN) * m->untraced[PHASE_NEST];
	double item = m->untraced[PHASE_YIELDS] / 2;
	struct cost c = {.known = inside > 0 && outside > 0 && down > 0 && up > 0};
	uint32_t enter;

	if (!c.known)
		return c;
	enter = net(down + (inside + outside - down - up) / 2, 0);
	c.before[COST_ENTER] = enter / 2;
	c.after[COST_ENTER] = enter - enter / 2;
	c.before[COST_LEAVE] = less(net(inside, 0), c.after[COST_ENTER]);
	c.after[COST_LEAVE] = less(net(outside, 0), c.before[COST_ENTER]);
	c.before[COST_YIELD] = less(net(m->between[ENTER_YIELD], item), c.after[COST_ENTER]);
	c.after[COST_YIELD] = less(net(m->between[YIELD_ENTER], item), c.before[COST_ENTER]);
	return c;
}

/* The cost in this round, with its reference. */
static struct cost cost_of_round(struct measuring *m)
{
	struct measure_means means = m->untraced;
	const double slower = means.body > 0 ? m->bodies / PHASES / means.body : 1;
	struct cost ret;

	means.loop *= slower;
	means.body *= slower;
	for (int p = 0; p < PHASES; p++)
		means.untraced[p] *= slower;
	for (int i = 0; i < INTERVALS; i++)
		means.between[i] = set_mean(&m->times[i]);
	ret = measure_costs_of(&means);
	if (m->latency.n)
		ret.latency_ps = (uint32_t)(1000 * m->latency.ns / m->latency.n);
	return ret;
}

static uint32_t *part_of(struct cost *c, size_t k)
{
	return k < COST_KINDS ? &c->before[k] : &c->after[k - COST_KINDS];
}

struct cost measure_typical(const struct cost *rounds, uint32_t n)
{
	struct cost ret = {.known = n >= ROUNDS_MIN};
	double v[ROUNDS];

	if (!ret.known)
		return ret;
	for (uint32_t i = 0; i < n; i++)
		v[i] = rounds[i].latency_ps;
	ret.latency_ps = (uint32_t)median_mean(v, n);
	for (size_t k = 0; k < 2 * COST_KINDS; k++) {
		for (uint32_t i = 0; i < n; i++) {
			struct cost round = rounds[i];

			v[i] = (double)*part_of(&round, k) / round.latency_ps;
		}
		*part_of(&ret, k) = (uint32_t)(median_mean(v, n) * ret.latency_ps + 0.5);
	}
	return ret;
}

/* ---- the scratch process ----------------------------------------------------------------- */

struct run {
	struct scratch scratch;
	struct probe *probe;
};

static void run_deinit(struct run *r)
{
	probe_free(r->probe);
	scratch_end(&r->scratch);
}

static int parse_untraced(struct measuring *m, const char *line)
{
	struct measure_means *u = &m->untraced;
	double *const to[] = {&u->loop, &u->body, &u->untraced[PHASE_PAIRS],
			      &u->untraced[PHASE_NEST], &u->untraced[PHASE_YIELDS]};
	char *end;

	if (strncmp(line, "ready ", 6) != 0)
		return -1;
	line += 6;
	for (size_t i = 0; i < sizeof(to) / sizeof(*to); i++, line = end) {
		*to[i] = (double)strtoull(line, &end, 10) / 1e3;
		if (end == line)
			return -1;
	}
	return 0;
}

static int start(struct run *r, const struct verify_opts *o, struct measuring *m)
{
	const struct scratch_opts so = {
		.target = o->target, .path = o->python->file, .script = script_measure};
	struct diag diag = {0};
	char line[128];

	if (scratch_start(&so, &r->scratch, &diag) < 0 ||
	    scratch_line(&r->scratch, line, sizeof(line)) < 0 || parse_untraced(m, line) < 0)
		return -1;
	return scratch_discover(&r->scratch, o->python, &diag);
}

static int attach(struct run *r, const struct verify_opts *o)
{
	struct diag diag = {0};
	uint64_t ts;

	if (scratch_probe(&r->scratch, o->plan, false, RING_BYTES, &r->probe, &diag) < 0)
		return -1;
	return probe_attach(r->probe, &ts, &diag);
}

static void close_round(struct measuring *m, bool count)
{
	struct cost c = cost_of_round(m);

	if (count && c.known && c.latency_ps)
		m->rounds[m->n++] = c;
	for (int i = 0; i < INTERVALS; i++)
		m->times[i].n = 0;
	m->bodies = 0;
}

static int run_phase(struct run *r, struct measuring *m, enum measure_phase phase)
{
	struct probe_latency before = probe_latency(r->probe), after;
	char line[32], *end;

	m->phase = phase;
	m->last_type = 0;
	if (scratch_go(&r->scratch) < 0 || scratch_line(&r->scratch, line, sizeof(line)) < 0 ||
	    strncmp(line, DONE, strlen(DONE)) != 0)
		return -1;
	m->bodies += (double)strtoull(line + strlen(DONE), &end, 10) / 1e3;
	if (end == line + strlen(DONE))
		return -1;
	after = probe_latency(r->probe);
	if (phase == PHASE_PAIRS)
		m->latency = (struct probe_latency){after.ns - before.ns, after.n - before.n};
	return probe_drain(r->probe, 0, on_record, m) < 0 ? -1 : 0;
}

static bool measured_enough(const struct measuring *m, uint64_t begun_ns)
{
	return m->n >= ROUNDS_MIN && clock_monotonic_ns() - begun_ns > ENOUGH_NS;
}

static int run_rounds(struct run *r, struct measuring *m)
{
	uint64_t begun_ns = clock_monotonic_ns();

	for (unsigned int round = 0; round <= ROUNDS && !measured_enough(m, begun_ns); round++) {
		for (int p = 0; p < PHASES; p++)
			if (run_phase(r, m, (enum measure_phase)p) < 0)
				return -1;
		/* The first round sends names and has cold caches. */
		close_round(m, round > 0);
		(void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
	return 0;
}

struct cost measure_cost(const struct verify_opts *o)
{
	_cleanup_(run_deinit) struct run run = {
		.scratch = {.in = -1, .out = -1, .leash = -1, .pidfd = -1}};
	_cleanup_free_ struct measuring *m = calloc(1, sizeof(*m));

	if (!m || start(&run, o, m) < 0 || attach(&run, o) < 0 || run_rounds(&run, m) < 0)
		return (struct cost){0};
	return measure_typical(m->rounds, m->n);
}
