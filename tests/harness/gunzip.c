// SPDX-License-Identifier: BSD-2-Clause
/* Decompressing: see gunzip.h. */
#include "harness/gunzip.h"

#include <zlib.h>

#include "harness/test.h"

#define MAX (16 << 20)

uint8_t *gunzip(const uint8_t *data, size_t n, size_t *ret_n)
{
	uint8_t *out = malloc(MAX);
	z_stream z = {
		.next_in = (uint8_t *)data, .avail_in = (uInt)n, .next_out = out, .avail_out = MAX};

	cr_assert(out);
	cr_assert(inflateInit2(&z, 16 + MAX_WBITS) == Z_OK);
	cr_assert(inflate(&z, Z_FINISH) == Z_STREAM_END);
	cr_assert_eq(z.avail_in, 0);
	*ret_n = z.total_out;
	inflateEnd(&z);
	return out;
}
