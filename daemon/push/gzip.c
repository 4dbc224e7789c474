// SPDX-License-Identifier: BSD-2-Clause
/* Compressing a buffer: see gzip.h. */
#include "push/gzip.h"

#include <errno.h>
#include <zlib.h>

#include "base/cleanup.h"

#define GZIP 16 /* for deflateInit2: a gzip header and trailer */

int push_gzip(const uint8_t *data, size_t n, uint8_t **ret, size_t *ret_n)
{
	_cleanup_free_ uint8_t *out = NULL;
	z_stream z = {.next_in = (uint8_t *)data, .avail_in = (uInt)n};
	size_t bound;
	int r;

	if (n >= UINT32_MAX / 2)
		return -EFBIG;
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + GZIP, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
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
