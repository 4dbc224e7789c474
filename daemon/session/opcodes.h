/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which opcodes a program executes rarely enough for marks (session/marks.h). To find that out costs
 * some thousand hits, so that only one of the processes of a program does, and the others then know.
 */
#ifndef PYPROF_SESSION_OPCODES_H
#define PYPROF_SESSION_OPCODES_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"
#include "pyprof/bpf_abi.h"

struct opcodes {
	unsigned int users;
	uint64_t first; /* vaddr of the plan's first mark, and their number: */
	uint32_t all;
	const void *by; /* who finds it out now; NULL: nobody */
	bool known;
	uint8_t v[PYP_MARKS]; /* numbers of marks that are rare enough; n of them */
	uint32_t n;
};

/* With one user; NULL: out of memory. share: adds a user; NULL: none. free: a user has ended. */
struct opcodes *opcodes_new(const struct plan *plan);
struct opcodes *opcodes_share(struct opcodes *o);
void opcodes_free(struct opcodes *o);

/* Returns whether they are those of this plan. */
bool opcodes_are_of(const struct opcodes *o, const struct plan *plan);

/*
 * Returns whether `by` may find them out: nobody else is doing so, and they are not known. It has to call
 * learn, or drop if it will not: by itself, or when it ends.
 */
bool opcodes_ask(struct opcodes *o, const void *by);
void opcodes_learn(struct opcodes *o, const void *by, const uint8_t *v, uint32_t n);
void opcodes_drop(struct opcodes *o, const void *by);

#endif
