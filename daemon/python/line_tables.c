// SPDX-License-Identifier: BSD-2-Clause
/* A cache of line tables: see line_tables.h. */
#include "python/line_tables.h"

#include <stdlib.h>

/*
 * The maximum size of the cache in bytes. Only forged code objects exceed it; the cache is then
 * emptied.
 */
#define BYTES_MAX ((size_t)64 << 20)

static void forget(struct line_tables *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		lines_deinit(&t->v[i]);
	map_clear(&t->at);
	t->n = 0;
	t->bytes = 0;
}

static bool make_room(struct line_tables *t)
{
	uint32_t want = t->room ? 2 * t->room : 64;
	struct lines *v;

	if (t->bytes >= BYTES_MAX)
		forget(t);
	if (t->n < t->room)
		return true;
	v = reallocarray(t->v, want, sizeof(*v));
	if (!v)
		return false;
	t->v = v;
	t->room = want;
	return true;
}

const struct lines *line_tables_get(struct line_tables *t, const struct layout *l,
				    const struct memory *mem, uint64_t code)
{
	struct lines *ret;
	uint32_t at;

	if (map_get(&t->at, code, &at))
		return t->v[at].table ? &t->v[at] : NULL;
	if (!make_room(t) || map_put(&t->at, code, t->n) < 0)
		return NULL;
	ret = &t->v[t->n++];
	*ret = (struct lines){0};
	(void)lines_read(l, mem, code, ret);
	t->bytes += sizeof(*ret) + ret->size;
	return ret->table ? ret : NULL;
}

void line_tables_deinit(struct line_tables *t)
{
	forget(t);
	free(t->v);
	map_deinit(&t->at);
	*t = (struct line_tables){0};
}
