// SPDX-License-Identifier: BSD-2-Clause
/* Arrays that grow: see array.h. */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void *array_room(void *v, uint32_t *room, uint32_t need, uint32_t first, size_t size)
{
	uint32_t want = *room ? *room : first;
	char *grown;

	if (need <= *room)
		return v;
	while (want < need)
		want = want < UINT32_MAX / 2 ? 2 * want : UINT32_MAX;
	grown = reallocarray(v, want, size);
	if (!grown)
		return NULL;
	memset(grown + *room * size, 0, (want - *room) * size);
	*room = want;
	return grown;
}
