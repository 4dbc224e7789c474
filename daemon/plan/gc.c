// SPDX-License-Identifier: BSD-2-Clause
/*
 * Collections of the cyclic garbage collector. Every collection, whatever triggered it, calls the
 * functions in gc.callbacks before and after, through one C function (invoke_gc_callback in
 * Modules/gcmodule.c, from 3.13 on Python/gc.c). Its arguments include a string, "start" or "stop",
 * followed by the generation as an int. The sites are the calls of that function: direct calls,
 * which the kernel emulates, and which are made even if there are no callbacks. Only the collection
 * at the interpreter's end makes none in some versions.
 *
 * The function is found by following direct calls from the exported PyGC_Collect: it is called with
 * both strings, and formats the callbacks' argument ("{sisnsn}": a dict that begins with a string
 * and an int). Then all direct calls of and jumps to it are searched in the file's code, by their
 * bytes. Each must be reached by decoding from the start of its function, as given by the unwind
 * table. Bytes that merely look like a call are skipped if decoding that function linearly does not
 * reach them as an instruction. Data flow within the function proves which register holds the
 * generation: the argument that is the int.
 */
#include "plan/gc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GC_FUNCTIONS 96 /* maximum number of functions searched from PyGC_Collect */
#define GC_DEPTH     4
#define GC_BACK	     48 /* maximum instructions from setting an argument to the call */
#define GC_FORWARD   32 /* maximum instructions from the format to the call that takes it */
#define GC_ARGS	     3
#define GC_FORMAT    "{sis"
#define GC_MAX_CALLS 64	     /* maximum number of places that look like calls of the function */
#define GC_MAX_INSNS 1000000 /* decoded in total; limits the cost of a hostile file */

enum gc_phase { GC_NO_PHASE, GC_START, GC_STOP };

/* Functions reachable from PyGC_Collect by calls, in the order in which they were found. */
struct gc_search {
	struct planner *p;
	uint32_t insns;
	uint64_t fn[GC_FUNCTIONS];
	uint8_t depth[GC_FUNCTIONS];
	unsigned int n;
};

/* ---- one function's code ----------------------------------------------------------------- */

static void cfg_deinitp(struct cfg *cfg)
{
	cfg_deinit(cfg);
}

/* Builds the graph of a function. -ENOENT: not code, or too much of it; -ENOMEM. */
static int function_graph(const struct planner *p, uint64_t vaddr, struct cfg *ret)
{
	int r;

	*ret = (struct cfg){.img = p->img, .arch = p->cfg.arch};
	r = cfg_explore(ret, &vaddr, 1);
	if (r == 0)
		r = cfg_link(ret);
	if (r == 0 && cfg_find(ret, vaddr) == CFG_NONE)
		r = -ENOENT;
	return r == -ENOMEM ? r : r < 0 ? -ENOENT : 0;
}

static bool is_text(const struct planner *p, uint64_t vaddr, const char *text, size_t n)
{
	const uint8_t *at = image_view(p->img, vaddr, n);

	return at && memcmp(at, text, n) == 0;
}

/* Returns whether the instruction sets the register to a constant address. */
static bool sets_address(const struct insn_full *in, int reg, uint64_t *ret)
{
	return in->op[0].type == INSN_OP_REG && in->op[0].reg == reg && in->op[0].written &&
	       (in->kind == INSN_MOVE || in->op[1].computed) && insn_const_address(&in->op[1], ret);
}

/*
 * Finds the constant address that register reg holds before node, looking back along straight code.
 */
static bool register_address(const struct cfg *cfg, uint32_t node, int reg, uint64_t *ret)
{
	for (int i = 0; i < GC_BACK && cfg->v[node].preds == 1 && !cfg->v[node].root; i++) {
		struct insn_full in;

		node = cfg->v[node].only_pred;
		if (!cfg_full(cfg, node, &in))
			return false;
		if (cfg->v[node].in.flow == INSN_CALL || cfg->v[node].in.flow == INSN_CALL_IND)
			return false;
		if (insn_writes_reg(&in, reg))
			return sets_address(&in, reg, ret);
	}
	return false;
}

/* Returns the phase that a call or jump at node passes as its argument. */
static enum gc_phase phase_at(const struct planner *p, const struct cfg *cfg, uint32_t node)
{
	uint64_t text;

	for (int i = 0; i < GC_ARGS; i++) {
		if (!register_address(cfg, node, cfg->arch->arg[i], &text))
			continue;
		if (is_text(p, text, "start", sizeof("start")))
			return GC_START;
		if (is_text(p, text, "stop", sizeof("stop")))
			return GC_STOP;
	}
	return GC_NO_PHASE;
}

static bool leads_to(const struct insn *in, uint64_t vaddr)
{
	return (in->flow == INSN_CALL || in->flow == INSN_JMP || in->flow == INSN_JCC) &&
	       in->target == vaddr;
}

/* ---- the function that calls gc.callbacks ------------------------------------------------ */

/* Returns the call that takes the format as its argument; CFG_NONE: none. */
static uint32_t format_call(const struct planner *p, const struct cfg *cfg)
{
	for (uint32_t i = 0; i < cfg->n; i++) {
		uint32_t node = i;
		struct insn_full in;
		uint64_t text;

		if (!cfg_full(cfg, i, &in) || !sets_address(&in, cfg->arch->arg[0], &text) ||
		    !is_text(p, text, GC_FORMAT, strlen(GC_FORMAT)))
			continue;
		for (int k = 0; k < GC_FORWARD && node != CFG_NONE; k++) {
			const struct cfg_node *at = &cfg->v[node];

			if (at->in.flow == INSN_CALL)
				return node;
			node = at->in.flow == INSN_JMP ? at->jump : at->next;
		}
	}
	return CFG_NONE;
}

/*
 * Returns the number of the function's argument that becomes the int of the format, the third
 * argument of call; -1: not proven; -ENOMEM.
 */
static int generation_argument(const struct cfg *cfg, uint64_t vaddr, uint32_t call)
{
	for (int i = 0; i < GC_ARGS; i++) {
		const struct flow_root root = {
			.node = cfg_find(cfg, vaddr),
			.regs = insn_bit(cfg->arch->arg[i]),
		};
		_cleanup_free_ struct flow_state *st = flow_solve(cfg, &root, 1, 32);

		if (!st)
			return -ENOMEM;
		if (st[call].reached && st[call].regs & insn_bit(cfg->arch->arg[2]))
			return i;
	}
	return -1;
}

/*
 * Returns 1 if the function at vaddr is the one that calls gc.callbacks, else 0; -ENOMEM.
 * *generation: see generation_argument().
 */
static int is_callback(const struct planner *p, uint64_t vaddr, int *generation)
{
	_cleanup_(cfg_deinitp) struct cfg cfg = {0};
	uint32_t call;
	int r = function_graph(p, vaddr, &cfg);

	if (r == -ENOMEM)
		return r;
	call = r < 0 ? CFG_NONE : format_call(p, &cfg);
	if (call == CFG_NONE)
		return 0;
	*generation = generation_argument(&cfg, vaddr, call);
	return *generation == -ENOMEM ? -ENOMEM : 1;
}

static void search_add(struct gc_search *s, uint64_t vaddr, unsigned int depth)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->fn[i] == vaddr)
			return;
	if (s->n == GC_FUNCTIONS || depth > GC_DEPTH)
		return;
	s->depth[s->n] = (uint8_t)depth;
	s->fn[s->n++] = vaddr;
}

/*
 * Searches one function for a call of the one that runs gc.callbacks. Returns 1 with its address in
 * *ret, 0 if there is none, or an error.
 */
static int search_function(struct gc_search *s, unsigned int at, uint64_t *ret, int *generation)
{
	_cleanup_(cfg_deinitp) struct cfg cfg = {0};
	int r = function_graph(s->p, s->fn[at], &cfg);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	s->insns += cfg.n;
	for (uint32_t i = 0; i < cfg.n; i++) {
		const struct insn *in = &cfg.v[i].in;

		if (in->flow != INSN_CALL)
			continue;
		r = phase_at(s->p, &cfg, i) ? is_callback(s->p, in->target, generation) : 0;
		*ret = in->target;
		if (r)
			return r;
		search_add(s, in->target, s->depth[at] + 1u);
	}
	return 0;
}

static int callback_find(struct planner *p, uint64_t *ret, int *generation)
{
	struct gc_search s = {.p = p};
	struct image_symbol sym;
	int r = 0;

	if (image_symbol(p->img, "PyGC_Collect", &sym) < 0)
		return planner_missing(p, "PyGC_Collect (no dynamic symbol)");
	search_add(&s, sym.vaddr, 0);
	for (unsigned int i = 0; i < s.n && s.insns < GC_MAX_INSNS && r == 0; i++)
		r = search_function(&s, i, ret, generation);
	if (r == 0)
		return planner_missing(p, "calls of gc.callbacks (not found from PyGC_Collect)");
	return r < 0 ? r : 0;
}

/* ---- its calls ----------------------------------------------------------------------------- */

struct gc_calls {
	struct planner *p;
	uint64_t callback;
	int generation; /* number of the argument with the generation; -1: unknown */
	unsigned int starts, stops, tried;
	uint32_t insns;
};

static int add_site(struct gc_calls *c, const struct cfg *cfg, uint32_t node, enum gc_phase phase)
{
	const int arg = c->generation < 0 ? 0 : c->generation;
	const struct flow_state st = {.reached = true, .regs = insn_bit(cfg->arch->arg[arg])};
	struct plan *plan = c->p->plan;
	struct plan_site *s = &plan->gc[plan->ngc];

	if (plan->ngc == PYP_MAX_GC_SITES)
		return planner_missing(c->p, "calls of gc.callbacks (too many)");
	if (cfg->v[node].in.flow == INSN_JCC ||
	    site_make(c->p, cfg, node, phase == GC_START ? PYP_SITE_GC_START : PYP_SITE_GC_STOP,
		      phase == GC_START ? "collection starts" : "collection stops", &st, s) < 0 ||
	    s->cost != PLAN_COST_EMULATED)
		return planner_missing(c->p, "calls of gc.callbacks (no probe possible)");
	if (c->generation < 0)
		s->disp = PYP_GC_NO_GENERATION;
	plan->ngc++;
	c->starts += phase == GC_START;
	c->stops += phase == GC_STOP;
	return 0;
}

/* Returns 1 if a call with "stop" is reachable after the call at `start`, 0 if not, -ENOMEM. */
static int is_stopped(const struct gc_calls *c, const struct cfg *cfg, uint32_t start)
{
	_cleanup_free_ uint8_t *seen = calloc(cfg->n + 1, 1);

	if (!seen || cfg_reach(cfg, cfg->v[start].next, NULL, seen) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < cfg->n; i++)
		if (seen[i] && leads_to(&cfg->v[i].in, c->callback) &&
		    phase_at(c->p, cfg, i) == GC_STOP)
			return 1;
	return 0;
}

/*
 * Adds a site at vaddr, whose bytes are those of a call of or a jump to the function, if it is an
 * instruction.
 */
static int plan_call(struct gc_calls *c, uint64_t vaddr)
{
	_cleanup_(cfg_deinitp) struct cfg cfg = {0};
	uint32_t node = CFG_NONE;
	enum gc_phase phase;
	uint64_t start;
	int r = image_function_start(c->p->img, vaddr, &start);

	if (r == -ENODATA)
		return planner_missing(c->p, "calls of gc.callbacks (no table for unwinding)");
	if (r < 0 || start == c->callback)
		return 0;
	if (++c->tried > GC_MAX_CALLS || c->insns > GC_MAX_INSNS)
		return planner_missing(c->p, "calls of gc.callbacks (too many)");
	r = function_graph(c->p, start, &cfg);
	if (r == -ENOMEM)
		return r;
	c->insns += cfg.n;
	if (r == 0)
		node = cfg_find(&cfg, vaddr);
	if (node == CFG_NONE || cfg.v[node].doubtful || !leads_to(&cfg.v[node].in, c->callback)) {
		if (!planner_linear_reaches(c->p, start, vaddr))
			return 0;
		return planner_missing(c->p, "calls of gc.callbacks (0x%llx is unreachable)",
				       (unsigned long long)vaddr);
	}
	phase = phase_at(c->p, &cfg, node);
	if (phase == GC_NO_PHASE)
		return planner_missing(c->p, "calls of gc.callbacks (phase unknown at 0x%llx)",
				       (unsigned long long)vaddr);
	r = phase == GC_START ? is_stopped(c, &cfg, node) : 1;
	if (r == 0)
		return planner_missing(c->p, "calls of gc.callbacks (no stop call after 0x%llx)",
				       (unsigned long long)vaddr);
	return r < 0 ? r : add_site(c, &cfg, node, phase);
}

/* The next address of a segment, from this offset on, that can be a call of or jump to the function */
static size_t next_call(const struct gc_calls *c, const struct image_segment *seg,
			const uint8_t *code, size_t from)
{
	const struct arch *arch = c->p->cfg.arch;

	if (!arch->find_branch || from >= seg->filesz)
		return from;
	return from +
	       arch->find_branch(code + from, seg->filesz - from, seg->vaddr + from, c->callback);
}

/* Tries every address in a segment whose bytes are a direct call of or jump to the function. */
static int plan_calls_in(struct gc_calls *c, const struct image_segment *seg)
{
	const uint8_t *code = image_view(c->p->img, seg->vaddr, seg->filesz);
	size_t i = code ? next_call(c, seg, code, 0) : seg->filesz;
	int r = 0;

	for (; i < seg->filesz && r == 0; i = next_call(c, seg, code, i + 1)) {
		struct insn in;

		if (c->p->cfg.arch->decode(code + i, seg->filesz - i, seg->vaddr + i, &in) &&
		    leads_to(&in, c->callback))
			r = plan_call(c, seg->vaddr + i);
	}
	return r;
}

static int plan_calls(struct gc_calls *c)
{
	const struct image_segment *seg;
	unsigned int n = image_segments(c->p->img, &seg);
	int r = 0;

	for (unsigned int i = 0; i < n && r == 0; i++)
		if (seg[i].exec)
			r = plan_calls_in(c, &seg[i]);
	if (r == 0 && (!c->starts || !c->stops))
		r = planner_missing(c->p, "calls of gc.callbacks (%s)",
				    c->starts ? "no stop call" : "no start call");
	return r;
}

/* Checks that no other site is at the same instruction, and that each site is an instruction. */
static int check_apart(struct planner *p)
{
	const struct plan *plan = p->plan;

	for (unsigned int i = 0; i < plan->ngc; i++)
		for (unsigned int k = 0; k < plan->nsites + plan->nnative; k++)
			if (plan_site(plan, k)->offset == plan->gc[i].offset)
				return planner_missing(
					p, "calls of gc.callbacks (conflicts with site %s)",
					plan_site(plan, k)->role);
	return planner_check_boundaries(p, plan->gc, plan->ngc);
}

int gc_plan(struct planner *p)
{
	struct planner own = *p;
	struct gc_calls calls = {.p = &own, .generation = -1};
	int r;

	own.missing[0] = '\0';
	r = callback_find(&own, &calls.callback, &calls.generation);
	if (r == 0)
		r = plan_calls(&calls);
	if (r == 0)
		r = check_apart(&own);
	if (r == 0 || r == -ENOMEM)
		return r;
	p->plan->ngc = 0;
	snprintf(p->plan->gc_missing, sizeof(p->plan->gc_missing), "%s",
		 own.missing[0] ? own.missing : "its collections");
	return 0;
}
