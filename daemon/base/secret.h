/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing secrets. Pure. */
#ifndef PYPROF_BASE_SECRET_H
#define PYPROF_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the n bytes are this string. The time depends on n only, not on the secret. */
bool secret_equal(const char *secret, const char *given, size_t n);

/*
 * Returns a lower estimate of the bits of a text that was made at random: its length times the bits of
 * the smallest usual alphabet (digits, hexadecimal digits, letters and digits) that has all of its
 * characters; 0 if it has few different ones.
 */
double secret_bits(const char *text);

#endif
