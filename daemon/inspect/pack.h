/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequences of numbers and texts in an inspector's messages (private to inspect/). */
#ifndef PYPROF_INSPECT_PACK_H
#define PYPROF_INSPECT_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message being written. All zero: empty. */
struct pack {
	char *data; /* owned */
	size_t n, room;
	bool failed; /* out of memory */
};

void pack_number(struct pack *p, uint64_t v);
/* text: NULL is kept apart from "". */
void pack_text(struct pack *p, const char *text);
/* Returns the malloc'd message; NULL: out of memory. */
char *pack_take(struct pack *p, size_t *ret_size);

/* A received message. All functions return 0 or NULL after the first failure. */
struct unpack {
	const char *at;
	size_t left;
	int err; /* -EPROTO: invalid, -ENOMEM */
};

uint64_t unpack_number(struct unpack *u);
/* A number up to max, else invalid. */
uint64_t unpack_up_to(struct unpack *u, uint64_t max);
/* An address in the target; others are invalid. */
uint64_t unpack_address(struct unpack *u);
/* A malloc'd text, UTF-8 without NUL, up to max bytes; NULL: none, or failed. */
char *unpack_text(struct unpack *u, size_t max);
/* The same, into out (size bytes). NULL is invalid. */
void unpack_field(struct unpack *u, char *out, size_t size);
/* Returns u->err, or -EPROTO if bytes are left. */
int unpack_end(const struct unpack *u);

#endif
