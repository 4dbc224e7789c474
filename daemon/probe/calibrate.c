// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measuring the probes' cost: see calibrate.h.
 *
 * A report needs the part of the time between two events that the probes cause: the part of the
 * first event after its clock was read, and the part of the second one before it. In a process that
 * does nothing between its hits, this is the whole time between two events. The costs therefore
 * follow from the events' timestamps, for calls that return at once (enter, leave, enter ...) and
 * for nested calls (enter, enter ...). One value remains undetermined: how a cost is split between
 * the two sides of its own clock reading. All sums are independent of that split.
 *
 * The scratch process is a fork of this one and has the sites (plan/arch/specimen.h) in its text.
 * It creates two frames in the layout of the target's interpreter, so that the programs do the same
 * work there.
 */
#include "probe/calibrate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "event/decode.h"
#include "plan/arch/specimen.h"
#include "probe/probe.h"

#define ROUNDS 5u
#define HITS   1000u /* of each kind, per round and pass */
/* Where traps are slow, two rounds have to do: an attach waits for this. */
#define ROUNDS_MIN 2u
#define ENOUGH_NS  UINT64_C(60000000)
#define RING_BYTES (4u << 20)
#define TIMEOUT_MS 5000

/* The sites ---------------------------------------------------------------------------------- */

_Static_assert((int)COST_KINDS <= SPECIMEN_SETS, "a specimen for each kind");

static const enum pyp_site_kind site_kinds[COST_KINDS] = {PYP_SITE_ENTER, PYP_SITE_LEAVE,
							  PYP_SITE_YIELD};

/* The plan's site for most events of a kind: sites of instrumented code are rarely hit. */
static const struct plan_site *main_site(const struct plan *plan, enum pyp_site_kind kind)
{
	const struct plan_site *found = NULL;

	for (unsigned int i = 0; i < plan->nsites; i++) {
		const struct plan_site *s = &plan->sites[i];
		bool rare = strncmp(s->role, "INSTRUMENTED", 12) == 0;

		if (s->kind == kind && !rare)
			return s;
		if (s->kind == kind && !found)
			found = s;
	}
	return found;
}

/* Returns the file offset of an address in this process; UINT64_MAX if it has none. */
static uint64_t file_offset(const void *addr)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "re");
	unsigned long long start, end, offset;
	char line[PATH_MAX + 128];

	while (f && fgets(line, sizeof(line), f)) {
		char *p;

		start = strtoull(line, &p, 16);
		end = strtoull(p + 1, &p, 16);
		p = strchr(p + 1, ' ');
		if (!p || (uintptr_t)addr < start || (uintptr_t)addr >= end)
			continue;
		offset = strtoull(p + 1, NULL, 16);
		return (uintptr_t)addr - start + offset;
	}
	return UINT64_MAX;
}

/* The scratch process ------------------------------------------------------------------------ */

struct scratch {
	const struct layout *layout;
	struct plan plan;
	void (*fn[COST_KINDS])(const void *frame);
	const void *arg[COST_KINDS]; /* the frame, or the location of its address */
	uint8_t *arena;		     /* shared, at the same address in both processes */
	pid_t pid;
	int go, done; /* this side's ends of the pipes */
};

#define ARENA_SIZE 65536u
/* Offsets in the arena: far apart, so that no frame looks like the shim of another. */
#define AT_CODE	  4096u
#define AT_CALLER 12352u
#define AT_FRAME  16640u
#define AT_SLOT	  24576u
#define AT_DATA	  32768u
#define AT_BASE	  49152u

static void put64(uint8_t *at, uint64_t v)
{
	memcpy(at, &v, sizeof(v));
}

static void lay_out(struct scratch *s)
{
	const struct pyp_layout *l = &s->layout->bpf;
	uint8_t *frame = s->arena + AT_FRAME, *caller = s->arena + AT_CALLER;

	put64(frame + l->frame_code, (uintptr_t)(s->arena + AT_CODE));
	put64(frame + l->frame_previous, (uintptr_t)caller);
	put64(caller + l->frame_code, (uintptr_t)(s->arena + AT_CODE));
	put64(s->arena + AT_SLOT, (uintptr_t)frame);
}

static int scratch_plan(struct scratch *s, const struct plan *plan)
{
	for (int k = 0; k < COST_KINDS; k++) {
		const struct plan_site *main = main_site(plan, site_kinds[k]);
		const struct specimen *mine;

		/* Before 3.11 there are no YIELD sites; it is a LEAVE. */
		if (!main && k == COST_YIELD)
			main = main_site(plan, PYP_SITE_LEAVE);
		if (!main)
			return -ENOENT;
		mine = specimen_like((unsigned int)k, main->bytes, main->cost == PLAN_COST_STEPPED);
		s->fn[k] = mine->fn;
		s->arg[k] = s->arena + (main->deref ? AT_SLOT : AT_FRAME);
		s->plan.sites[k] = (struct plan_site){
			.offset = file_offset(mine->insn),
			.vaddr =
				(uintptr_t)mine->insn, /* the same address in the scratch process */
			.kind = site_kinds[k],
			.cost = main->cost,
			.reg = specimen_reg,
			.deref = main->deref,
		};
		if (s->plan.sites[k].offset == UINT64_MAX)
			return -ENOENT;
	}
	s->plan.nsites = COST_KINDS;
	return 0;
}

/*
 * A trap costs more than the time until it returns: caches and the predictor of indirect jumps are
 * less effective afterwards. A small interpreter therefore runs between the hits, as in a real
 * target; its time without probes is subtracted.
 */
#define OP(n, expr)                                                                                \
	static __attribute__((noinline)) uint64_t op_##n(uint64_t v, uint8_t *mem)                 \
	{                                                                                          \
		uint64_t *at = (uint64_t *)(mem + ((v * 40503u >> 3) & 4032));                     \
		return expr;                                                                       \
	}

OP(add, (*at += v) + 3)
OP(xor, (*at ^= v) * 5)
OP(load, *at + v)
OP(store, (*at = v) + 7)
OP(shift, (v << 3 | v >> 61) + *at)
OP(branch, v & 8 ? *at + 1 : v * 3)
OP(mul, v **at + 11)
OP(sub, v - (*at)++)

static uint64_t (*const ops[])(uint64_t, uint8_t *) = {
	op_add, op_xor, op_load, op_store, op_shift, op_branch, op_mul, op_sub,
};

static void interpret(const struct scratch *s)
{
	static const uint8_t program[] = {0, 2, 5, 1, 7, 3, 6, 4, 2, 2, 5, 0, 3, 1};
	uint64_t v = 1;

	for (size_t i = 0; i < sizeof(program); i++)
		v = ops[program[i]](v, s->arena + AT_DATA);
}

static void hit(const struct scratch *s, enum cost_kind k)
{
	s->fn[k](s->arg[k]);
	interpret(s);
}

/* Runs one round of everything to measure, in this order. */
static void run_round(const struct scratch *s)
{
	for (unsigned int i = 0; i < HITS; i++) {
		hit(s, COST_ENTER);
		hit(s, COST_LEAVE);
	}
	for (unsigned int i = 0; i < HITS; i++)
		hit(s, COST_ENTER);
	for (unsigned int i = 0; i < HITS; i++) {
		hit(s, COST_ENTER);
		hit(s, COST_YIELD);
	}
}

/* Returns the ns between hits without probes: the minimum of several rounds. */
static uint64_t base_ns(const struct scratch *s)
{
	uint64_t least = UINT64_MAX;

	for (unsigned int round = 0; round < 20; round++) {
		uint64_t start = clock_monotonic_ns();

		for (unsigned int i = 0; i < HITS; i++)
			hit(s, i & 1 ? COST_LEAVE : COST_ENTER);
		start = clock_monotonic_ns() - start;
		least = start < least ? start : least;
	}
	return least / HITS;
}

static _Noreturn void scratch_main(const struct scratch *s, int go, int done)
{
	char c = 0;

	/* Touch the arena's pages, because BPF programs cannot handle page faults. */
	for (size_t i = 0; i < ARENA_SIZE; i += 4096)
		*(volatile uint8_t *)(s->arena + i);
	put64(s->arena + AT_BASE, base_ns(s));
	while (read(go, &c, 1) == 1) {
		run_round(s);
		if (write(done, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static int scratch_start(struct scratch *s)
{
	int go[2], done[2];

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(done, O_CLOEXEC) < 0)
		return -errno;
	s->pid = fork();
	if (s->pid < 0)
		return -errno;
	if (s->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		close(done[0]);
		scratch_main(s, go[0], done[1]);
	}
	close(go[0]);
	close(done[1]);
	s->go = go[1];
	s->done = done[0];
	return 0;
}

/* The helper --------------------------------------------------------------------------------- */

struct times {
	uint64_t *v;
	size_t n;
};

enum interval { ENTER_LEAVE, LEAVE_ENTER, ENTER_ENTER, ENTER_YIELD, YIELD_ENTER, INTERVALS };

struct measuring {
	uint8_t last_type;
	uint64_t last_ts;
	struct times times[INTERVALS];
	struct probe_latency latency;
};

static int interval_of(uint8_t first, uint8_t second)
{
	if (first == PYP_REC_ENTER && second == PYP_REC_ENTER)
		return ENTER_ENTER;
	if (first == PYP_REC_ENTER)
		return second == PYP_REC_LEAVE ? ENTER_LEAVE : ENTER_YIELD;
	if (second == PYP_REC_ENTER)
		return first == PYP_REC_LEAVE ? LEAVE_ENTER : YIELD_ENTER;
	return -1;
}

static bool is_call(uint8_t type)
{
	return type == PYP_REC_ENTER || type == PYP_REC_LEAVE || type == PYP_REC_YIELD;
}

static void on_record(void *ctx, const void *data, size_t size)
{
	struct measuring *m = ctx;
	struct event e;
	int which = -1;

	if (decode_event(data, size, &e) != DECODE_OK)
		return;
	/* Time between an event and a context switch is not counted. */
	if (is_call(e.type) && is_call(m->last_type))
		which = interval_of(m->last_type, e.type);
	if (which >= 0 && m->times[which].n < (size_t)ROUNDS * HITS)
		m->times[which].v[m->times[which].n++] = e.ts - m->last_ts;
	m->last_type = e.type;
	m->last_ts = e.ts;
}

static int compare_u64(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* Returns the median minus the time without probes; 0: too few values. */
static uint64_t median(struct times *t, uint64_t base)
{
	if (t->n < HITS / 2)
		return 0;
	qsort(t->v, t->n, sizeof(*t->v), compare_u64);
	return t->v[t->n / 2] > base ? t->v[t->n / 2] - base : 0;
}

static uint32_t less(uint64_t whole, uint32_t part)
{
	return whole > part ? (uint32_t)(whole - part) : 0;
}

struct cost calibration_cost(const struct calibration_times *t)
{
	struct cost c = {.known = t->enter_leave && t->leave_enter && t->enter_enter};

	if (!c.known)
		return c;
	c.before[COST_ENTER] = (uint32_t)(t->enter_enter / 2);
	c.after[COST_ENTER] = less(t->enter_enter, c.before[COST_ENTER]);
	c.before[COST_LEAVE] = less(t->enter_leave, c.after[COST_ENTER]);
	c.after[COST_LEAVE] = less(t->leave_enter, c.before[COST_ENTER]);
	c.before[COST_YIELD] = less(t->enter_yield, c.after[COST_ENTER]);
	c.after[COST_YIELD] = less(t->yield_enter, c.before[COST_ENTER]);
	return c;
}

static void measuring_deinit(struct measuring *m)
{
	for (int i = 0; i < INTERVALS; i++)
		free(m->times[i].v);
}

static int measure_rounds(const struct scratch *s, struct probe *p, struct measuring *m)
{
	const uint64_t end_ns = clock_monotonic_ns() + ENOUGH_NS;
	char c = 0;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (i >= ROUNDS_MIN && clock_monotonic_ns() > end_ns)
			break;
		if (write(s->go, &c, 1) != 1 || read(s->done, &c, 1) != 1)
			return -EPIPE;
		if (probe_drain(p, 0, on_record, m) < 0)
			return -EIO;
		m->last_type = 0;
	}
	m->latency = probe_latency(p);
	return 0;
}

static int measure_attached(const struct scratch *s, struct measuring *m)
{
	_cleanup_(probe_freep) struct probe *p = NULL;
	struct diag diag;
	char via[32];
	uint64_t ts;
	int r;

	snprintf(via, sizeof(via), "/proc/%d/exe", (int)s->pid);
	r = probe_open(&(struct probe_opts){.pid = s->pid,
					    .via = via,
					    .ring_bytes = RING_BYTES,
					    .layout = s->layout,
					    .plan = &s->plan},
		       &p, &diag);
	if (r == 0)
		r = probe_attach(p, &ts, &diag);
	return r < 0 ? r : measure_rounds(s, p, m);
}

struct cost calibrate_synthetic(const struct layout *layout, const struct plan *plan)
{
	struct scratch s = {.layout = layout};
	_cleanup_(measuring_deinit) struct measuring m = {0};
	struct cost none = {0}, ret;
	uint64_t base;

	s.arena = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s.arena == MAP_FAILED)
		return none;
	for (int i = 0; i < INTERVALS; i++) {
		m.times[i].v = calloc((size_t)ROUNDS * HITS, sizeof(*m.times[i].v));
		if (!m.times[i].v)
			return none;
	}
	lay_out(&s);
	if (scratch_plan(&s, plan) < 0 || scratch_start(&s) < 0 || measure_attached(&s, &m) < 0)
		return none;
	memcpy(&base, s.arena + AT_BASE, sizeof(base));
	ret = calibration_cost(&(struct calibration_times){
		.enter_leave = median(&m.times[ENTER_LEAVE], base),
		.leave_enter = median(&m.times[LEAVE_ENTER], base),
		.enter_enter = median(&m.times[ENTER_ENTER], base),
		.enter_yield = median(&m.times[ENTER_YIELD], base),
		.yield_enter = median(&m.times[YIELD_ENTER], base),
	});
	ret.synthetic = true;
	if (m.latency.n)
		ret.latency_ps = (uint32_t)(1000 * m.latency.ns / m.latency.n);
	return ret;
}
