/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pstats' restrictions, applied left to right: an integer keeps that many rows, a fraction of one
 * that share of them, anything else is a regular expression searched for in `file:line(name)`.
 * Patterns come from clients: their length, their nesting and their running time are bounded.
 */
#ifndef PYPROF_FORMAT_RESTRICT_H
#define PYPROF_FORMAT_RESTRICT_H

#include "format/table.h"

#define RESTRICT_MAX	     64
#define RESTRICT_MAX_PATTERN 4096

struct restrictions;

/* A bad pattern, a fraction above one, too many of them: -EINVAL, exit code 2. */
int restrictions_parse(const char *const *list, size_t n, struct restrictions **ret,
		       struct diag *diag);
void restrictions_free(struct restrictions *r);
DEFINE_FREEP(struct restrictions, restrictions_free)

/*
 * Shorten `order` in place. What pstats says about it ("List reduced from …") is written to
 * `notes`. A pattern that takes too long: -EINVAL, exit code 2.
 */
int restrictions_apply(const struct restrictions *r, const struct table *t, uint32_t *order,
		       size_t *n, FILE *notes, struct diag *diag);

/*
 * Which of the names does the pattern match? A NULL name is never matched. A bad pattern, or one that
 * takes too long: -EINVAL, exit code 2.
 */
int restrict_names(const char *pattern, char *const *names, size_t n, bool *matches,
		   struct diag *diag);

/* Not a number of rows nor a share of them? */
bool restriction_is_pattern(const char *s);

#endif
