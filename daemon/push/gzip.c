// SPDX-License-Identifier: BSD-2-Clause
/* Compressing a buffer: see gzip.h. */
#include "push/gzip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/cleanup.h"

#define GZIP  16 /* for deflateInit2: a gzip header and trailer */
#define PIECE ((size_t)16384)

static int begin(z_stream *z)
{
	return deflateInit2(z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + GZIP, 8,
			    Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : -ENOMEM;
}

int push_gzip(const uint8_t *data, size_t n, uint8_t **ret, size_t *ret_n)
{
	_cleanup_free_ uint8_t *out = NULL;
	z_stream z = {.next_in = (uint8_t *)data, .avail_in = (uInt)n};
	size_t bound;
	int r;

	if (n >= UINT32_MAX / 2)
		return -EFBIG;
	if (begin(&z) < 0)
		return -ENOMEM;
	bound = deflateBound(&z, n);
	out = malloc(bound);
	z.next_out = out;
	z.avail_out = (uInt)bound;
	r = out ? deflate(&z, Z_FINISH) : Z_MEM_ERROR;
	deflateEnd(&z);
	if (r != Z_STREAM_END)
		return -ENOMEM;
	*ret_n = bound - z.avail_out;
	*ret = TAKE_PTR(out);
	return 0;
}

/* ---- in pieces ---- */

static void end_stream(struct push_zip *z)
{
	if (z->stream)
		deflateEnd(z->stream);
	free(z->stream);
	z->stream = NULL;
}

void push_zip_deinit(struct push_zip *z)
{
	end_stream(z);
	free(z->data);
	*z = (struct push_zip){.n = 0};
}

static void begin_stream(struct push_zip *z)
{
	if (z->stream || z->err)
		return;
	z->stream = calloc(1, sizeof(*z->stream));
	if (z->stream && begin(z->stream) == 0)
		return;
	free(z->stream);
	z->stream = NULL;
	z->err = -ENOMEM;
}

static bool make_room(struct push_zip *z)
{
	size_t cap = z->cap ? z->cap * 2 : PIECE;
	uint8_t *more;

	if (z->cap - z->n >= PIECE / 2)
		return true;
	more = realloc(z->data, cap);
	if (!more) {
		z->err = -ENOMEM;
		return false;
	}
	z->data = more;
	z->cap = cap;
	return true;
}

/* Until zlib has taken all input; with Z_FINISH until it has written everything. */
static void run(struct push_zip *z, int flush)
{
	int r = Z_OK;

	while (!z->err && (z->stream->avail_in || (flush == Z_FINISH && r != Z_STREAM_END))) {
		size_t room;

		if (!make_room(z))
			return;
		room = z->cap - z->n < UINT32_MAX / 2 ? z->cap - z->n : UINT32_MAX / 2;
		z->stream->next_out = z->data + z->n;
		z->stream->avail_out = (uInt)room;
		r = deflate(z->stream, flush);
		if (r == Z_STREAM_ERROR)
			z->err = -ENOMEM;
		z->n += room - z->stream->avail_out;
	}
}

void push_zip_add(struct push_zip *z, const void *data, size_t n)
{
	const uint8_t *p = data;

	begin_stream(z);
	while (n && !z->err) {
		size_t some = n < UINT32_MAX / 2 ? n : UINT32_MAX / 2;

		z->stream->next_in = (uint8_t *)p;
		z->stream->avail_in = (uInt)some;
		run(z, Z_NO_FLUSH);
		p += some;
		n -= some;
	}
}

int push_zip_finish(struct push_zip *z)
{
	begin_stream(z);
	run(z, Z_FINISH);
	end_stream(z);
	return z->err;
}
