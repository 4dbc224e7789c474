// SPDX-License-Identifier: BSD-2-Clause
#include "stack/longest.h"

static uint32_t find_least(const struct long_wait v[WAIT_LONGEST])
{
	uint32_t least = 0;

	for (uint32_t i = 1; i < WAIT_LONGEST; i++)
		if (v[i].ns < v[least].ns)
			least = i;
	return least;
}

void longest_add(struct longest *l, enum wait_reason why, const struct long_wait *w)
{
	struct long_wait *v = l->of[why].v;
	uint32_t *n = &l->of[why].n, *least = &l->of[why].least;

	if (*n == WAIT_LONGEST) {
		if (w->ns <= v[*least].ns)
			return;
		v[*least] = *w;
	} else {
		v[(*n)++] = *w;
	}
	if (*n == WAIT_LONGEST)
		*least = find_least(v);
}
