/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the profiles that are being sent. Profiles are written to memory before they are sent,
 * because only then their length and success are known. This limits their total. Clients that may
 * only read get half of it, so that they cannot keep others from reading. Pure.
 */
#ifndef PYPROF_SERVER_BODIES_H
#define PYPROF_SERVER_BODIES_H

#include <stdbool.h>
#include <stddef.h>

#define BODIES_MAX ((size_t)512 << 20)

struct bodies {
	size_t max;	   /* 0: BODIES_MAX */
	size_t held;	   /* bytes */
	size_t by_readers; /* part of these: of clients that may only read */
};

/* The bytes of profiles that a client may make the daemon hold. */
size_t bodies_max(const struct bodies *b, bool reader);
/* How many of these are in use. */
size_t bodies_held(const struct bodies *b, bool reader);

void bodies_add(struct bodies *b, size_t n, bool reader);
void bodies_remove(struct bodies *b, size_t n, bool reader);

#endif
