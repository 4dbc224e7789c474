// SPDX-License-Identifier: BSD-2-Clause
/* Lists of ended threads: see ended.h. */
#include "profile/ended.h"

#include <stdlib.h>

void ended_deinit(struct ended *e)
{
	free(e->rows);
	map_deinit(&e->row_of);
}

void ended_clear(struct ended *e)
{
	map_clear(&e->row_of);
	e->first = e->last = NULL;
	e->napart = 0;
	e->folded = 0;
}
