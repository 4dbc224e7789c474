/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that a pattern selects: those whose calls are followed. Pure. */
#ifndef PYPROF_SLOW_MATCH_H
#define PYPROF_SLOW_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "profile/profile.h"

struct match {
	char *pattern;	     /* searched for in `file:line(name)`; NULL: the program's own code */
	uint64_t unsearched; /* functions on which the pattern took too long: they do not match */
};

/* The functions of one profile that were looked up. Zeroed: none. */
struct match_known {
	uint8_t *v; /* per function: 0 not looked up, 1 no, 2 yes */
	uint32_t n;
};

/* pattern is copied. -EINVAL with exit code 2: invalid pattern. */
int match_init(struct match *m, const char *pattern, struct diag *diag);
void match_deinit(struct match *m);
void match_known_deinit(struct match_known *k);

/* Returns whether it selects this function. WATCH_NO_FUNC is accepted. */
bool match_func(struct match *m, struct match_known *k, const struct profile *p, uint32_t func);

#endif
