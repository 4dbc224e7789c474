// SPDX-License-Identifier: BSD-2-Clause
/* Target options of the commands that attach: see target_args.h. */
#include "target_args.h"

#include <string.h>

#include "base/parse.h"

int target_args_check(const struct target_opts_given *g, struct diag *diag)
{
	/* Without a mode, the daemon's mode decides whether the rate is valid. */
	if (!TARGET_OPTS_HAS(g, mode.mode) && TARGET_OPTS_HAS(g, mode.rate))
		return 0;
	return target_opts_check_given(g, diag);
}

/* The JSON value of an option. Lists and choices are strings. */
static json_t *json_of(const struct opt *row, const struct target_opts *o)
{
	char buf[OPT_TEXT_MAX];
	const char *text = opt_text(row, o, buf);
	uint64_t number;

	if (!row->arg)
		return json_boolean(strcmp(text, "true") == 0);
	return parse_u64(text, 0, INT64_MAX, &number) == 0 ? json_integer((json_int_t)number)
							   : json_string(text);
}

void target_args_add(const struct target_opts_given *g, json_t *body)
{
	for (const struct opt *row = target_opt_table; row->name; row++)
		if (target_opts_has(g, row->offset))
			json_object_set_new(body, row->key, json_of(row, &g->opts));
}
