// SPDX-License-Identifier: BSD-2-Clause
#include "session/opcodes.h"

#include <stdlib.h>
#include <string.h>

static uint64_t first_of(const struct plan *plan)
{
	return plan->nmarks ? plan->marks[0].vaddr : 0;
}

struct opcodes *opcodes_new(const struct plan *plan)
{
	struct opcodes *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->users = 1;
	o->first = first_of(plan);
	o->all = plan->nmarks;
	return o;
}

struct opcodes *opcodes_share(struct opcodes *o)
{
	if (o)
		o->users++;
	return o;
}

void opcodes_free(struct opcodes *o)
{
	if (o && --o->users == 0)
		free(o);
}

bool opcodes_are_of(const struct opcodes *o, const struct plan *plan)
{
	return o->first == first_of(plan) && o->all == plan->nmarks;
}

bool opcodes_ask(struct opcodes *o, const void *by)
{
	if (o->known || (o->by && o->by != by))
		return false;
	o->by = by;
	return true;
}

void opcodes_learn(struct opcodes *o, const void *by, const uint8_t *v, uint32_t n)
{
	if (o->by != by || n > PYP_MARKS)
		return;
	memcpy(o->v, v, n * sizeof(*v));
	o->n = n;
	o->known = n > 0;
	o->by = NULL;
}

void opcodes_drop(struct opcodes *o, const void *by)
{
	if (o->by == by)
		o->by = NULL;
}
