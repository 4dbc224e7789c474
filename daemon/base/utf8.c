// SPDX-License-Identifier: BSD-2-Clause
/* CPython strings to UTF-8: see utf8.h. */
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define UTF8_REPLACEMENT 0xfffdu

static uint32_t unit_at(const uint8_t *p, unsigned int kind)
{
	uint16_t u16;
	uint32_t u32;

	switch (kind) {
	case 1:
		return *p;
	case 2:
		memcpy(&u16, p, sizeof(u16));
		return u16;
	default:
		memcpy(&u32, p, sizeof(u32));
		return u32;
	}
}

static uint32_t sanitized(uint32_t c)
{
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return UTF8_REPLACEMENT;
	return c;
}

static char *put_char(char *out, uint32_t c)
{
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | (c >> 6));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | (c >> 12));
		*out++ = (char)(0x80 | ((c >> 6) & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else {
		*out++ = (char)(0xf0 | (c >> 18));
		*out++ = (char)(0x80 | ((c >> 12) & 0x3f));
		*out++ = (char)(0x80 | ((c >> 6) & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	}
	return out;
}

char *utf8_from_units(const uint8_t *data, size_t bytes, unsigned int kind, size_t *ret_len)
{
	size_t units, size;
	char *str, *end;

	if (kind != 1 && kind != 2 && kind != 4)
		return NULL;
	units = bytes / kind;
	/* Latin-1 needs up to 2 bytes per character, 3 for the replacement; UCS-4 up to 4. */
	if (__builtin_mul_overflow(units, kind == 4 ? 4 : 3, &size) || size == SIZE_MAX)
		return NULL;
	str = malloc(size + 1);
	if (!str)
		return NULL;
	end = str;
	for (size_t i = 0; i < units; i++)
		end = put_char(end, sanitized(unit_at(data + i * kind, kind)));
	*end = '\0';
	if (ret_len)
		*ret_len = (size_t)(end - str);
	return str;
}
