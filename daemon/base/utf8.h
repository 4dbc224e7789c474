/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPython strings to UTF-8. A str holds characters of 1 (ASCII, Latin-1), 2 (UCS-2) or 4 (UCS-4)
 * bytes, in the machine's byte order.
 */
#ifndef PYPROF_BASE_UTF8_H
#define PYPROF_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Convert the (bytes / kind) characters at data to a NUL-terminated UTF-8 string, malloc'd and
 * owned by the caller. An incomplete last character is ignored. Surrogates, values beyond Unicode
 * and U+0000 become U+FFFD. kind: 1, 2 or 4. ret_len (may be NULL): length in bytes. Returns NULL
 * if out of memory or kind is invalid.
 */
char *utf8_from_units(const uint8_t *data, size_t bytes, unsigned int kind, size_t *ret_len);

#endif
