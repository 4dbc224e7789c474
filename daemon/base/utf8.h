/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPython's string representation to UTF-8. A str holds characters of 1 (ASCII, Latin-1), 2 (UCS-2)
 * or 4 (UCS-4) bytes each, in the machine's byte order.
 */
#ifndef PYPROF_BASE_UTF8_H
#define PYPROF_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * The bytes / kind characters at data as a NUL-terminated UTF-8 string, malloc'd; the caller owns
 * it. A trailing part of a character is left out. What UTF-8 or a C string cannot hold (surrogates,
 * values beyond Unicode, U+0000) becomes U+FFFD. kind is 1, 2 or 4. ret_len (may be NULL) gets its
 * length in bytes. NULL: out of memory, or no such kind.
 */
char *utf8_from_units(const uint8_t *data, size_t bytes, unsigned int kind, size_t *ret_len);

#endif
