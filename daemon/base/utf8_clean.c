// SPDX-License-Identifier: BSD-2-Clause
/* Replacing invalid UTF-8: see utf8_clean.h. */
#include "base/utf8_clean.h"

#include <string.h>

static size_t expected_len(unsigned char c)
{
	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf)
		return 2;
	if (c >= 0xe0 && c <= 0xef)
		return 3;
	if (c >= 0xf0 && c <= 0xf4)
		return 4;
	return 0;
}

uint32_t utf8_decode(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	uint32_t c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

size_t utf8_len(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n = expected_len(p[0]);
	uint32_t c;

	if (n <= 1)
		return p[0] ? n : 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	c = utf8_decode(s, n);
	/* overlong forms, surrogates, beyond U+10FFFF */
	if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) || c > 0x10ffff ||
	    (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return n;
}

char *utf8_clean(const char *in, char *out, size_t size)
{
	size_t o = 0;

	while (*in) {
		size_t n = utf8_len(in);
		size_t step = n ? n : 1;

		if (o + step >= size)
			break;
		if (n)
			memcpy(out + o, in, n);
		else
			out[o] = '?';
		o += step;
		in += step;
	}
	out[o] = '\0';
	return out;
}
