// SPDX-License-Identifier: BSD-2-Clause
/*
 * Before 3.11 the evaluator may call through a helper, call_function, which finds the callable on
 * the value stack. Then the sites are in the helper. It has no frame argument, but callee-saved
 * registers hold the frame, and the helper saves them. If it ends with a jump to the calling
 * function (trace_call_function, while a tracing tool that is not a profiler is active), the call's
 * return cannot be probed: the frame's next event ends it.
 *
 * Source: CPython v3.6.15 and v3.8.18 Python/ceval.c, call_function.
 */
#include "plan/native.h"

#include <errno.h>
#include <string.h>

/* Callee-saved registers that hold the frame at all calls of the function. */
static insn_regs frame_at_calls(const struct native *n, uint64_t target)
{
	insn_regs regs = ~n->arch.caller_saved;

	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		if (n->p.cfg.v[i].in.flow == INSN_CALL && n->p.cfg.v[i].in.target == target)
			regs &= n->frame[i].reached ? n->frame[i].regs : 0;
	return regs;
}

static int plan_calls(struct native *h, uint32_t entry, insn_regs frame)
{
	int r = native_code_open(h);

	if (r < 0)
		return r;
	h->starts[entry] = 1;
	memset(h->generic, 1, h->p.cfg.n);
	r = native_frame_from(h, entry, frame);
	if (r == 0)
		r = native_plan_calls(h);
	return r;
}

/* Plan sites in the function. *ret: it makes calls. */
static int plan_function(struct native *n, uint64_t target, bool *ret)
{
	struct native h = {.p = n->p, .callees = n->callees};
	uint32_t entry;
	bool calls = false;
	int r;

	h.p.cfg = (struct cfg){.img = n->p.img, .arch = n->machine};
	r = cfg_explore(&h.p.cfg, &target, 1);
	if (r == 0)
		r = cfg_link(&h.p.cfg);
	entry = r == 0 ? cfg_find(&h.p.cfg, target) : CFG_NONE;
	if (entry != CFG_NONE)
		r = plan_calls(&h, entry, frame_at_calls(n, target));
	for (uint32_t i = 0; entry != CFG_NONE && i < h.p.cfg.n && h.calls; i++)
		calls |= h.calls[i];
	if (r == 0 && calls)
		r = native_prove(&h, h.starts, NULL, "call_function");
	if (r == 0 && calls)
		r = native_leaves(&h);
	memcpy(n->p.missing, h.p.missing, sizeof(n->p.missing));
	native_code_close(&h);
	cfg_deinit(&h.p.cfg);
	*ret = calls;
	return r;
}

/* Helpers, each analyzed once */
struct helpers {
	uint64_t target[NATIVE_DEFS];
	bool inside[NATIVE_DEFS]; /* its calls have sites */
	unsigned int n;
};

/* Plan sites inside a helper. On failure it has none, and calls of it may get sites instead. */
static int open_helper(struct native *n, struct helpers *h, uint64_t target)
{
	const unsigned int before = n->p.plan->nnative;
	int r;

	if (h->n == NATIVE_DEFS)
		return planner_missing(&n->p, "calls (too many functions)");
	h->target[h->n] = target;
	r = plan_function(n, target, &h->inside[h->n]);
	if (r == -ENOEXEC && native_called_argument(n, target) >= 0) {
		n->p.plan->nnative = before;
		n->p.missing[0] = '\0';
		h->inside[h->n] = false;
		r = 0;
	}
	h->n++;
	return r;
}

int native_plan_helpers(struct native *n)
{
	struct helpers h = {.n = 0};
	int r = 0;

	for (uint32_t i = 0; i < n->p.cfg.n && r == 0; i++) {
		const struct cfg_node *node = &n->p.cfg.v[i];
		unsigned int k = 0;

		if (!n->generic[i] || n->calls[i] || node->in.flow != INSN_CALL ||
		    native_is_named(n, node->in.target))
			continue;
		while (k < h.n && h.target[k] != node->in.target)
			k++;
		if (k == h.n)
			r = open_helper(n, &h, node->in.target);
		if (r == 0 && h.inside[k])
			n->calls[i] = 1;
		else if (r == 0)
			r = native_plan_direct(n, i);
	}
	return r;
}
