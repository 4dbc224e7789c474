// SPDX-License-Identifier: BSD-2-Clause
/* Intervals as compressed bytes: see gz.h. */
#include "history/gz.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define GZIP	   (15 + 16) /* zlib's window bits, with gzip's header */
#define READ_FIRST (64u << 10)

static int cannot(const char *what, int err, struct diag *diag)
{
	return diag_errno(diag, err, "cannot %s an interval", what);
}

int gz_pack_text(const char *text, size_t size, enum gz_effort effort, void **ret, size_t *ret_size,
		 struct diag *diag)
{
	z_stream z = {0};
	void *out, *fit;
	size_t room;

	if (size > GZ_MAX_BYTES)
		return cannot("keep", EFBIG, diag);
	if (deflateInit2(&z, (int)effort, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return cannot("compress", ENOMEM, diag);
	room = deflateBound(&z, size);
	out = malloc(room);
	if (!out) {
		deflateEnd(&z);
		return cannot("compress", ENOMEM, diag);
	}
	z.next_in = (Bytef *)text;
	z.avail_in = (uInt)size;
	z.next_out = out;
	z.avail_out = (uInt)room;
	(void)deflate(&z, Z_FINISH); /* cannot fail with this much room */
	*ret_size = z.total_out;
	deflateEnd(&z);
	fit = realloc(out, *ret_size);
	*ret = fit ? fit : out;
	return 0;
}

int gz_pack_interval(const struct interval *iv, enum gz_effort effort, void **ret, size_t *ret_size,
		     struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return cannot("write", errno, diag);
	r = interval_write(iv, out, diag);
	if (fclose(out) != 0 && r == 0)
		r = cannot("write", errno, diag);
	return r < 0 ? r : gz_pack_text(text, size, effort, ret, ret_size, diag);
}

/* ---- reading ---- */

struct text {
	char *v;
	size_t n, room;
};

static bool text_grow(struct text *t)
{
	size_t room = t->room ? 2 * t->room : READ_FIRST;
	char *v = room <= 2 * GZ_MAX_BYTES ? realloc(t->v, room) : NULL;

	if (!v)
		return false;
	t->v = v;
	t->room = room;
	return true;
}

/* Inflates one member; zlib's result, Z_STREAM_END if it is complete. */
static int inflate_member(z_stream *z, struct text *t)
{
	int r = Z_OK;

	t->n = 0;
	while (r == Z_OK) {
		if (t->n == t->room && !text_grow(t))
			return Z_MEM_ERROR;
		z->next_out = (Bytef *)t->v + t->n;
		z->avail_out = (uInt)(t->room - t->n);
		r = inflate(z, Z_NO_FLUSH);
		t->n = t->room - z->avail_out;
		if (t->n > GZ_MAX_BYTES)
			return Z_MEM_ERROR;
	}
	return r;
}

static int damaged(int z, const char *name, struct diag *diag)
{
	if (z == Z_MEM_ERROR)
		return diag_set(diag, -EFBIG, PYP_EXIT_FAILURE, "",
				"'%.200s' contains an interval larger than %zu MiB", name,
				GZ_MAX_BYTES >> 20);
	return diag_set(diag, -EBADMSG, PYP_EXIT_FAILURE, "the file is damaged",
			"'%.200s' cannot be decompressed", name);
}

int gz_unpack_text(const void *data, size_t size, const char *name, gz_text_fn fn, void *ctx,
		   struct diag *diag)
{
	struct text text = {0};
	z_stream z = {.next_in = (Bytef *)data};
	int r = 0;

	if (size > UINT_MAX)
		return damaged(Z_MEM_ERROR, name, diag);
	z.avail_in = (uInt)size;
	if (inflateInit2(&z, GZIP) != Z_OK)
		return cannot("read", ENOMEM, diag);
	while (r == 0 && z.avail_in) {
		const size_t before = z.avail_in;
		const int done = inflate_member(&z, &text);

		r = done == Z_STREAM_END ? fn(ctx, text.v, text.n, before - z.avail_in, diag)
					 : damaged(done, name, diag);
		if (inflateReset(&z) != Z_OK && r == 0)
			r = damaged(Z_DATA_ERROR, name, diag);
	}
	inflateEnd(&z);
	free(text.v);
	return r;
}

struct intervals {
	const char *name;
	gz_unpack_fn fn;
	void *ctx;
};

static int parse_one(void *ctx, const char *text, size_t n, size_t size, struct diag *diag)
{
	const struct intervals *to = ctx;
	struct interval *iv = NULL;
	int r = interval_parse(text, n, to->name, &iv, diag);

	(void)size;
	return r < 0 ? r : to->fn(to->ctx, iv, diag);
}

int gz_unpack(const void *data, size_t size, const char *name, gz_unpack_fn fn, void *ctx,
	      struct diag *diag)
{
	struct intervals to = {.name = name, .fn = fn, .ctx = ctx};

	return gz_unpack_text(data, size, name, parse_one, &to, diag);
}
