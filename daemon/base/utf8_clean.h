/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes from a target are not always UTF-8 (Linux command lines and file names are just bytes),
 * but JSON and OpenMetrics are.
 */
#ifndef PYPROF_BASE_UTF8_CLEAN_H
#define PYPROF_BASE_UTF8_CLEAN_H

#include <stddef.h>
#include <stdint.h>

/* Length of the valid UTF-8 sequence at s (1…4), or 0. NUL-terminated input; stops at its end. */
size_t utf8_len(const char *s);

/* The code point of the valid sequence of n bytes at s. */
uint32_t utf8_decode(const char *s, size_t n);

/* Copy in to out (size bytes, always NUL-terminated); each invalid byte becomes '?'. Cuts at a
 * character's boundary. Returns out. */
char *utf8_clean(const char *in, char *out, size_t size);

#endif
