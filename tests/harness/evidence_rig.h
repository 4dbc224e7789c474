/* SPDX-License-Identifier: BSD-2-Clause */
/* Evidence and its tree of calling contexts, without a profile: the root calls f, f calls g. */
#ifndef PYPROF_TESTS_HARNESS_EVIDENCE_RIG_H
#define PYPROF_TESTS_HARNESS_EVIDENCE_RIG_H

#include "accuracy/evidence.h"
#include "stats/func.h"

enum { F = FUNC_PSEUDO_MAX, G, H, FUNCS };

struct evidence_rig {
	struct evidence e;
	struct calltree tree;
	uint32_t root, f, g; /* g is called by f */
};

void evidence_rig_init(struct evidence_rig *m);
void evidence_rig_deinit(struct evidence_rig *m);

/* A window or stretch shows these calls and this CPU time, in ns, of a context. */
void evidence_rig_seen(struct evidence_rig *m, uint32_t node, uint64_t calls, uint64_t cpu);

/*
 * After a gap, a window of length_ns with what was seen ends. cost: of hits; NULL: unknown. times: they took so
 * many times as long.
 */
void evidence_rig_fold(struct evidence_rig *m, uint64_t gap_ns, uint64_t length_ns,
		       const struct cost *cost, double times);

#endif
