/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replacing invalid UTF-8. Linux command lines and file names are arbitrary bytes, but JSON and
 * OpenMetrics require UTF-8.
 */
#ifndef PYPROF_BASE_UTF8_CLEAN_H
#define PYPROF_BASE_UTF8_CLEAN_H

#include <stddef.h>
#include <stdint.h>

/* Length of the valid UTF-8 sequence at s (1 to 4), or 0. s is NUL-terminated and not read beyond.
 */
size_t utf8_len(const char *s);

/* The code point of the valid n-byte sequence at s */
uint32_t utf8_decode(const char *s, size_t n);

/* Copy in to out (size bytes, always NUL-terminated), replacing each invalid byte by '?'. A
 * character that does not fit is left out as a whole. Returns out. */
char *utf8_clean(const char *in, char *out, size_t size);

#endif
