// SPDX-License-Identifier: BSD-2-Clause
/* The list of layout tables: see layout.h. */
#include "python/layout.h"

#include <stddef.h>
#include <stdio.h>

#include "python/layout_versions.h"

const struct layout *const layout_tables[] = {
	&layout_3_06, &layout_3_07, &layout_3_08, &layout_3_09, &layout_3_10, &layout_3_11,
	&layout_3_12, &layout_3_13, &layout_3_14, &layout_3_15, NULL,
};

const struct layout *layout_find(unsigned int major, unsigned int minor)
{
	for (const struct layout *const *l = layout_tables; *l; l++)
		if ((*l)->major == major && (*l)->minor == minor)
			return *l;
	return NULL;
}

const char *layout_proven_range(char *out, size_t size)
{
	const struct layout *first = NULL, *last = NULL;

	for (const struct layout *const *l = layout_tables; *l; l++) {
		if (!(*l)->proven)
			continue;
		first = first ? first : *l;
		last = *l;
	}
	if (first)
		snprintf(out, size, "%u.%u-%u.%u", first->major, first->minor, last->major,
			 last->minor);
	else
		snprintf(out, size, "no version");
	return out;
}
