// SPDX-License-Identifier: BSD-2-Clause
/* Fields of messages: see field.h. */
#include "inspect/field.h"

#include <string.h>

void field_put(char *field, size_t size, const char *text)
{
	size_t n = strnlen(text, size - 1);

	memcpy(field, text, n);
	memset(field + n, 0, size - n);
}

bool field_take(char *out, size_t size, const char *field, size_t field_size)
{
	size_t n = strnlen(field, field_size);

	if (n == field_size || n >= size)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)field[i];

		out[i] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
	}
	out[n] = '\0';
	return true;
}
