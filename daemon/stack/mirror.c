// SPDX-License-Identifier: BSD-2-Clause
#include "stack/mirror.h"

#include <stdlib.h>

void mirror_free(struct mirror *m)
{
	if (!m)
		return;
	free(m->v);
	free(m);
}

bool mirror_reserve(struct mirror *m)
{
	uint32_t cap = m->cap ? m->cap * 2 : 64;
	struct mirror_frame *v;

	if (m->n < m->cap)
		return true;
	v = reallocarray(m->v, cap, sizeof(*v));
	if (!v)
		return false;
	m->v = v;
	m->cap = cap;
	return true;
}
