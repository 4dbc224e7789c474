// SPDX-License-Identifier: BSD-2-Clause
/* Memory of profiles: see bodies.h. */
#include "server/bodies.h"

size_t bodies_max(const struct bodies *b, bool reader)
{
	size_t max = b->max ? b->max : BODIES_MAX;

	return reader ? max / 2 : max;
}

size_t bodies_held(const struct bodies *b, bool reader)
{
	size_t others = bodies_max(b, false) - bodies_max(b, true); /* they may hold this much */
	size_t beyond = b->held > others ? b->held - others : 0;

	if (!reader)
		return b->held;
	return beyond > b->by_readers ? beyond : b->by_readers;
}

void bodies_add(struct bodies *b, size_t n, bool reader)
{
	b->held += n;
	b->by_readers += reader ? n : 0;
}

void bodies_remove(struct bodies *b, size_t n, bool reader)
{
	b->held -= n;
	b->by_readers -= reader ? n : 0;
}
