/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of an inspector's messages: writing texts of fixed size, and checks of what is received. */
#ifndef PYPROF_INSPECT_FIELD_H
#define PYPROF_INSPECT_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No address of user space is as high. */
#define FIELD_ADDRESS_END (UINT64_C(1) << 56)

/* Copy text to a field, truncated and always NUL-terminated. */
void field_put(char *field, size_t size, const char *text);
/* Copy a field that must contain a NUL and fit; control characters are replaced. False: it does not. */
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
