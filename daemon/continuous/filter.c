// SPDX-License-Identifier: BSD-2-Clause
/* Which Python processes continuous mode samples: see filter.h. */
#include "continuous/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Command lines are hostile: a limit on what one comparison may take. */
#define MATCH_LIMIT 100000

struct filter {
	pcre2_code *pattern; /* NULL: any */
	pcre2_match_data *data;
	pcre2_match_context *limits;
	char *unit; /* without ".service"; NULL: any */
};

void filter_free(struct filter *f)
{
	if (!f)
		return;
	pcre2_code_free(f->pattern);
	pcre2_match_data_free(f->data);
	pcre2_match_context_free(f->limits);
	free(f->unit);
	free(f);
}

static int compile(struct filter *f, const char *match, struct diag *diag)
{
	char why[96] = "";
	PCRE2_SIZE at;
	int err;

	f->pattern = pcre2_compile((PCRE2_SPTR)match, PCRE2_ZERO_TERMINATED, 0, &err, &at, NULL);
	if (f->pattern)
		return 0;
	pcre2_get_error_message(err, (PCRE2_UCHAR *)why, sizeof(why));
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, why, "--match: invalid pattern '%.100s'",
			match);
}

static size_t stem(const char *unit)
{
	const size_t n = strlen(unit), m = strlen(".service");

	return n > m && strcmp(unit + n - m, ".service") == 0 ? n - m : n;
}

int filter_new(const char *match, const char *unit, struct filter **ret, struct diag *diag)
{
	_cleanup_(filter_freep) struct filter *f = calloc(1, sizeof(*f));
	int r = 0;

	if (!f)
		return diag_errno(diag, ENOMEM, "cannot select processes");
	f->data = pcre2_match_data_create(1, NULL);
	f->limits = pcre2_match_context_create(NULL);
	f->unit = unit ? strndup(unit, stem(unit)) : NULL;
	if (!f->data || !f->limits || (unit && !f->unit))
		return diag_errno(diag, ENOMEM, "cannot select processes");
	pcre2_set_match_limit(f->limits, MATCH_LIMIT);
	if (match)
		r = compile(f, match, diag);
	if (r == 0)
		*ret = TAKE_PTR(f);
	return r;
}

static bool is_unit(const struct filter *f, const char *unit)
{
	return !f->unit ||
	       (stem(unit) == strlen(f->unit) && strncmp(unit, f->unit, stem(unit)) == 0);
}

bool filter_admits(const struct filter *f, const char *command, const char *unit)
{
	if (!is_unit(f, unit))
		return false;
	return !f->pattern || pcre2_match(f->pattern, (PCRE2_SPTR)command, PCRE2_ZERO_TERMINATED, 0,
					  0, f->data, f->limits) >= 0;
}
