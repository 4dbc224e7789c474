/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pstats' restrictions, applied left to right: an integer keeps that many rows, a fraction below
 * one keeps that share of them, anything else is a regular expression searched for in
 * `file:line(name)`. Clients supply the patterns, so length, nesting and running time are bounded.
 */
#ifndef PYPROF_FORMAT_RESTRICT_H
#define PYPROF_FORMAT_RESTRICT_H

#include "format/table.h"

#define RESTRICT_MAX	     64
#define RESTRICT_MAX_PATTERN 4096

struct restrictions;

/*
 * Parses a list. *ret belongs to the caller. Returns 0, -ENOMEM, or -EINVAL with exit code 2 for an
 * invalid pattern, a fraction above one or too many restrictions.
 */
int restrictions_parse(const char *const *list, size_t n, struct restrictions **ret,
		       struct diag *diag);
void restrictions_free(struct restrictions *r);
DEFINE_FREEP(struct restrictions, restrictions_free)

/*
 * Shortens `order` in place and appends pstats' remarks ("List reduced from …") to `notes`. Returns
 * 0, or -EINVAL with exit code 2 if a pattern exceeds its time limit.
 */
int restrictions_apply(const struct restrictions *r, const struct table *t, uint32_t *order,
		       size_t *n, FILE *notes, struct diag *diag);

/*
 * Sets matches[i] for each name that the pattern matches; a NULL name never matches. Returns 0, or
 * -EINVAL with exit code 2 if the pattern is invalid or exceeds its time limit.
 */
int restrict_names(const char *pattern, char *const *names, size_t n, bool *matches,
		   struct diag *diag);

/* Returns whether s is a pattern, i.e. neither a number of rows nor a share of them. */
bool restriction_is_pattern(const char *s);

#endif
