// SPDX-License-Identifier: BSD-2-Clause
/* The list of layout tables: see layout.h. */
#include "python/layout_base.h"

#include <stddef.h>

const struct layout *const layout_tables[] = {
	&layout_3_06, &layout_3_07, &layout_3_08,  &layout_3_09, &layout_3_10, &layout_3_11,
	&layout_3_12, &layout_3_13, &layout_3_13t, &layout_3_14, &layout_3_15, NULL,
};
