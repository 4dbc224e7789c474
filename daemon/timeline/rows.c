// SPDX-License-Identifier: BSD-2-Clause
/* Text of rows: see rows.h. */
#include "timeline/rows.h"

#include <string.h>

char *timeline_put(char *at, const char *text)
{
	size_t n = strlen(text);

	memcpy(at, text, n);
	return at + n;
}

char *timeline_put_number(char *at, uint64_t n)
{
	char digits[20];
	int i = 0;

	do {
		digits[i++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	while (i)
		*at++ = digits[--i];
	return at;
}
