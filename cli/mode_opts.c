// SPDX-License-Identifier: BSD-2-Clause
/* --mode, --rate, --max-overhead and --metrics: see mode_opts.h. */
#include "mode_opts.h"

#include <errno.h>

#include "base/metrics.h"

const char *const mode_opts_names[] = {"", "trace", "count", "sample", NULL};

/* Without a mode it is the daemon's to say whether the rest fits its own. */
int mode_opts_check(const struct mode_opts *o, struct diag *diag)
{
	enum mode mode = o->mode ? (enum mode)(o->mode - 1) : MODE_TRACE;
	uint32_t metrics;
	int r = mode_check_bound(o->max_overhead, mode, o->metrics,
				 "leave --max-overhead out, or --mode and --metrics", diag);

	if (r == 0 && o->metrics)
		r = metrics_parse(o->metrics, &metrics, diag);
	if (r < 0)
		return r;
	if (!o->rate || !o->mode || o->mode == MODE_SAMPLE + 1)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "add --mode sample",
			"--rate is for sampling only");
}

void mode_opts_set(const struct mode_opts *o, json_t *body)
{
	if (o->mode)
		json_object_set_new(body, "mode", json_string(mode_opts_names[o->mode]));
	if (o->rate)
		json_object_set_new(body, "rate", json_integer((json_int_t)o->rate));
	if (o->max_overhead)
		json_object_set_new(body, "max_overhead",
				    json_integer((json_int_t)o->max_overhead));
	if (o->metrics)
		json_object_set_new(body, "metrics", json_string(o->metrics));
}
