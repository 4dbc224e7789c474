// SPDX-License-Identifier: BSD-2-Clause
/* Bodies of inserts: see inserts.h. */
#include "push/inserts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "clickhouse/records.h"

#define GZIP  16
#define PIECE 65536u

/* Where in a record the next byte is */
struct reader {
	struct inserts *in;
	const struct known *known;
	uint8_t head[RECORD_HEAD];
	size_t nhead;
	struct record record; /* once the head is complete */
	size_t left;	      /* of its row */
	bool skip;
};

void inserts_deinit(struct inserts *in)
{
	for (int i = 0; i < TABLES_KINDS; i++)
		push_zip_deinit(&in->of[i].body);
	free(in->keys);
	map_deinit(&in->seen);
	*in = (struct inserts){.nkeys = 0};
}

/* ---- records ---- */

static int remember(struct inserts *in, uint64_t key)
{
	if (in->nkeys == in->cap) {
		size_t cap = in->cap ? in->cap * 2 : 256;
		uint64_t *more = reallocarray(in->keys, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		in->keys = more;
		in->cap = cap;
	}
	in->keys[in->nkeys++] = key;
	return map_put(&in->seen, key, 1);
}

/* Names that the server has, and those that came before, are left out. */
static int begin_row(struct reader *r)
{
	const struct record *rec = &r->record;
	uint32_t unused;

	if (!record_decode(r->head, &r->record))
		return -EBADMSG;
	r->nhead = 0;
	r->left = rec->n;
	r->skip = rec->key &&
		  (known_has(r->known, rec->key) || map_get(&r->in->seen, rec->key, &unused));
	if (r->skip)
		return 0;
	r->in->of[rec->kind].rows++;
	return rec->key ? remember(r->in, rec->key) : 0;
}

static int take(struct reader *r, const uint8_t *p, size_t n)
{
	int err = 0;

	while (n && !err) {
		size_t want = r->left ? r->left : RECORD_HEAD - r->nhead;
		size_t some = n < want ? n : want;

		if (r->left) {
			if (!r->skip)
				push_zip_add(&r->in->of[r->record.kind].body, p, some);
			r->left -= some;
		} else {
			memcpy(r->head + r->nhead, p, some);
			r->nhead += some;
			if (r->nhead == RECORD_HEAD)
				err = begin_row(r);
		}
		p += some;
		n -= some;
	}
	return err;
}

/* ---- streams ---- */

/* Decompresses once into the buffer. *ret_end: the end of a stream. */
static int read_piece(struct reader *r, z_stream *z, uint8_t piece[PIECE], bool *ret_end)
{
	int got;

	z->next_out = piece;
	z->avail_out = PIECE;
	got = inflate(z, Z_NO_FLUSH);
	*ret_end = got == Z_STREAM_END;
	if (got == Z_MEM_ERROR)
		return -ENOMEM;
	if (got != Z_OK && got != Z_STREAM_END)
		return -EBADMSG;
	return take(r, piece, PIECE - z->avail_out);
}

static int read_streams(struct reader *r, z_stream *z)
{
	uint8_t piece[PIECE];
	bool end = false;
	int err = 0;

	while (!err && (z->avail_in || !end)) {
		if (end && inflateReset(z) != Z_OK)
			return -EBADMSG;
		err = read_piece(r, z, piece, &end);
	}
	return !err && (r->nhead || r->left) ? -EBADMSG : err;
}

int inserts_read(struct inserts *in, const uint8_t *zipped, size_t n, const struct known *known)
{
	struct reader r = {.in = in, .known = known};
	z_stream z = {.next_in = (uint8_t *)zipped, .avail_in = (uInt)n};
	int err;

	*in = (struct inserts){.nkeys = 0};
	if (n > UINT32_MAX)
		return -EBADMSG;
	if (inflateInit2(&z, GZIP + MAX_WBITS) != Z_OK)
		return -ENOMEM;
	err = read_streams(&r, &z);
	inflateEnd(&z);
	for (int i = 0; i < TABLES_KINDS && !err; i++)
		if (in->of[i].rows)
			err = push_zip_finish(&in->of[i].body);
	return err;
}
