/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of pieces of memory that hold a timeline's records (timeline/wire.h) in order; no record is
 * split. Private to timeline/. */
#ifndef PYPROF_TIMELINE_PIECES_H
#define PYPROF_TIMELINE_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "timeline/wire.h"

struct piece {
	struct piece *next;
	char *data; /* size bytes, of which n are used */
	size_t n, size;
	uint64_t newest; /* the latest time of its records */
};

/* Zeroed: empty. */
struct pieces {
	struct piece *first, *last;
	uint64_t n, size; /* bytes used, and allocated */
};

/* Free them all; the list is empty then. */
void pieces_deinit(struct pieces *ps);
/* Whether n bytes fit into the last piece */
static inline int pieces_fits(const struct pieces *ps, size_t n)
{
	return ps->last && ps->last->size - ps->last->n >= n;
}
/* Append an empty piece. -ENOMEM: the list is unchanged. */
int pieces_grow(struct pieces *ps, size_t size);
/* Append a record and its text to the last piece, where both fit; sets its size. */
void pieces_put(struct pieces *ps, struct timeline_rec *r, const char *text, size_t ntext);
/* Remove the first piece, which is the caller's: piece_free(). NULL: there is none. */
struct piece *pieces_shift(struct pieces *ps);
void piece_free(struct piece *p);
/* Move all pieces of `from` to the end of ps. */
void pieces_move(struct pieces *ps, struct pieces *from);

#endif
