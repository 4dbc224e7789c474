/* SPDX-License-Identifier: BSD-2-Clause */
/* An estimate and its tree of calling contexts, without a profile: the root calls f, f calls g. */
#ifndef PYPROF_TESTS_HARNESS_ESTIMATE_RIG_H
#define PYPROF_TESTS_HARNESS_ESTIMATE_RIG_H

#include "estimate/estimate.h"
#include "stats/func.h"

enum { F = FUNC_PSEUDO_MAX, G, H, FUNCS };

struct estimate_rig {
	struct estimate e;
	struct calltree tree;
	uint32_t root, f, g; /* g is called by f */
	struct funcs *funcs; /* NULL: all functions are Python functions */
};

extern const struct cost estimate_rig_no_cost;

void estimate_rig_init(struct estimate_rig *m);
void estimate_rig_deinit(struct estimate_rig *m);

/* A window shows these calls and this time, in ns, of a context. */
void estimate_rig_seen(struct estimate_rig *m, uint32_t node, uint64_t calls, uint64_t cpu,
		       uint64_t wall);

/* The estimate so far; estimate_result_deinit() frees it. */
struct estimate_result estimate_rig_reconcile(const struct estimate_rig *m,
					      const struct cost *cost);
/* Of that estimate, without costs: the figures of a context, and the variance of a function's. */
struct estimate_figures estimate_rig_figures(const struct estimate_rig *m, uint32_t node);
double estimate_rig_variance(const struct estimate_rig *m, uint32_t func, enum snapshot_figure k);

#endif
