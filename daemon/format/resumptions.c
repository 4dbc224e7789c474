// SPDX-License-Identifier: BSD-2-Clause
/* Resumptions of generators and coroutines: see resumptions.h. */
#include "format/resumptions.h"

#include <stdlib.h>

uint64_t *resumptions_new(const struct snapshot *s, const struct view_filter *filter)
{
	uint64_t *ret = calloc((size_t)s->nfuncs + 1, sizeof(*ret));

	if (!ret)
		return NULL;
	for (uint32_t i = 0; i < s->nfuncs; i++)
		ret[i] = RESUMED_NONE;
	if (filter->tid || snapshot_guesses_counts(s))
		return ret;
	for (uint32_t i = 0; i < s->ncoros; i++) {
		const struct snapshot_coro *c = &s->coros[i];

		/* a greenlet's steps are switches, not calls */
		if (c->kind == SNAPSHOT_GREENLET || (filter->pid && filter->pid != c->pid))
			continue;
		ret[c->func] = ret[c->func] == RESUMED_NONE ? 0 : ret[c->func];
		ret[c->func] += c->steps > c->started ? c->steps - c->started : 0;
	}
	return ret;
}
