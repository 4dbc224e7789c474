// SPDX-License-Identifier: BSD-2-Clause
/* Pieces of memory that hold records: see pieces.h. */
#include "timeline/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void piece_free(struct piece *p)
{
	if (!p)
		return;
	free(p->data);
	free(p);
}

void pieces_deinit(struct pieces *ps)
{
	struct piece *p;

	while ((p = pieces_shift(ps)))
		piece_free(p);
}

int pieces_grow(struct pieces *ps, size_t size)
{
	struct piece *p = calloc(1, sizeof(*p));

	if (p)
		p->data = malloc(size);
	if (!p || !p->data) {
		free(p);
		return -ENOMEM;
	}
	p->size = size;
	if (ps->last)
		ps->last->next = p;
	else
		ps->first = p;
	ps->last = p;
	ps->size += size;
	return 0;
}

void pieces_put(struct pieces *ps, struct timeline_rec *r, const char *text, size_t ntext)
{
	struct piece *p = ps->last;
	const size_t n = sizeof(*r) + ntext;
	char *at = p->data + p->n;

	r->size = (uint32_t)n;
	memcpy(at, r, sizeof(*r));
	if (ntext)
		memcpy(at + sizeof(*r), text, ntext);
	p->n += n;
	ps->n += n;
	if (r->ts > p->newest)
		p->newest = r->ts;
}

struct piece *pieces_shift(struct pieces *ps)
{
	struct piece *p = ps->first;

	if (!p)
		return NULL;
	ps->first = p->next;
	if (!ps->first)
		ps->last = NULL;
	ps->n -= p->n;
	ps->size -= p->size;
	p->next = NULL;
	return p;
}

void pieces_move(struct pieces *ps, struct pieces *from)
{
	if (!from->first)
		return;
	if (ps->last)
		ps->last->next = from->first;
	else
		ps->first = from->first;
	ps->last = from->last;
	ps->n += from->n;
	ps->size += from->size;
	*from = (struct pieces){0};
}
