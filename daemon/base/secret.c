// SPDX-License-Identifier: BSD-2-Clause
/* Comparing secrets: see secret.h. */
#include "base/secret.h"

#include <string.h>

#define DIGITS	 "0123456789"
#define LEAST_OF 8 /* different characters; 22 or more random ones practically always have more */

bool secret_equal(const char *secret, const char *given, size_t n)
{
	const bool same_length = strlen(secret) == n;
	const char *wanted = same_length ? secret : given;
	volatile unsigned char differ = !same_length;

	for (size_t i = 0; i < n; i++)
		differ = (unsigned char)(differ | (given[i] ^ wanted[i]));
	return !differ;
}

static size_t different(const char *text)
{
	bool seen[256] = {false};
	size_t n = 0;

	for (; *text; text++) {
		n += !seen[(unsigned char)*text];
		seen[(unsigned char)*text] = true;
	}
	return n;
}

double secret_bits(const char *text)
{
	const size_t n = strlen(text);

	if (different(text) < LEAST_OF)
		return 0;
	if (strspn(text, DIGITS) == n)
		return 3.32 * (double)n;
	if (strspn(text, DIGITS "abcdef") == n || strspn(text, DIGITS "ABCDEF") == n)
		return 4.0 * (double)n;
	return 5.95 * (double)n;
}
