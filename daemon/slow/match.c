// SPDX-License-Identifier: BSD-2-Clause
/* Functions that a pattern selects: see match.h. */
#include "slow/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/names.h"
#include "format/restrict.h"
#include "stack/watch.h"
#include "stats/reduce.h"

/* Each may have taken a millisecond. */
#define UNSEARCHED_MAX 16u

int match_init(struct match *m, const char *pattern, struct diag *diag)
{
	int r;

	*m = (struct match){0};
	if (!pattern)
		return 0;
	if (!*pattern)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "a regular expression",
				"the pattern is empty");
	r = restrict_names(pattern, NULL, 0, NULL, diag);
	if (r < 0)
		return r;
	m->pattern = strdup(pattern);
	return m->pattern ? 0 : diag_errno(diag, ENOMEM, "cannot follow calls");
}

void match_deinit(struct match *m)
{
	free(TAKE_PTR(m->pattern));
}

void match_known_deinit(struct match_known *k)
{
	free(k->v);
	*k = (struct match_known){0};
}

/* A name on which the pattern takes too long does not match; after some, no more are searched. */
static bool search(struct match *m, const struct profile_func *f)
{
	_cleanup_free_ char *name = name_std(f->filename ? f->filename : "", f->firstlineno,
					     f->qualname ? f->qualname
					     : f->name	 ? f->name
							 : "");
	bool found = false;

	if (!name || m->unsearched >= UNSEARCHED_MAX ||
	    restrict_names(m->pattern, &name, 1, &found, NULL) < 0) {
		m->unsearched++;
		return false;
	}
	return found;
}

/* The program's own code: neither the standard library, nor packages, nor C functions */
static bool is_own(const struct profile_func *f)
{
	return f->filename && *f->filename && strcmp(f->filename, "~") != 0 &&
	       !reduce_is_library(f->filename);
}

static bool reserve(struct match_known *k, uint32_t func)
{
	uint32_t n = k->n ? k->n : 1024;
	uint8_t *v;

	while (n <= func)
		n *= 2;
	if (n == k->n)
		return true;
	v = realloc(k->v, n);
	if (!v)
		return false;
	memset(v + k->n, 0, n - k->n);
	k->v = v;
	k->n = n;
	return true;
}

bool match_func(struct match *m, struct match_known *k, const struct profile *p, uint32_t func)
{
	struct profile_func f;
	bool found;

	if (func == WATCH_NO_FUNC)
		return false;
	if (func < k->n && k->v[func])
		return k->v[func] == 2;
	f = profile_func(p, func);
	/* Its name may still arrive. */
	if ((!f.filename && !f.name) || !reserve(k, func))
		return false;
	found = m->pattern ? search(m, &f) : is_own(&f);
	k->v[func] = found ? 2 : 1;
	return found;
}
