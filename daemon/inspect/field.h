/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of an inspector's messages: writes strings of fixed size, and checks received values. */
#ifndef PYPROF_INSPECT_FIELD_H
#define PYPROF_INSPECT_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* User-space addresses are below this limit. */
#define FIELD_ADDRESS_END (UINT64_C(1) << 56)

/* Copies text to a field of `size` bytes, truncated, NUL-terminated, padded with zeros. */
void field_put(char *field, size_t size, const char *text);
/*
 * Copies a field to out (size bytes), replacing control characters. Returns false if the field has
 * no NUL or does not fit.
 */
bool field_take(char *out, size_t size, const char *field, size_t field_size);

/* The same for arrays. */
#define FIELD_PUT(to, from)  field_put(to, sizeof(to), from)
#define FIELD_TAKE(to, from) field_take(to, sizeof(to), from, sizeof(from))

static inline bool field_is_bit(uint8_t v)
{
	return v <= 1;
}

static inline bool field_is_address(uint64_t a)
{
	return a < FIELD_ADDRESS_END;
}

#endif
