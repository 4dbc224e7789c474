// SPDX-License-Identifier: BSD-2-Clause
/* Comparing two snapshots that the client has: see compare.h. */
#include "compare.h"

#include <errno.h>
#include <string.h>

#include "base/terminal.h"
#include "format/format.h"
#include "saved.h"

const char *const compare_formats[] = {"", "text", "json", NULL}; /* "": not given */

struct output {
	const struct diff *diff;
	const struct compare_opts *opts;
	bool json;
};

/* By --format, or by the extension of the output file. */
int compare_format(const struct compare_opts *o, bool *ret_json, struct diag *diag)
{
	const char *name = o->format ? compare_formats[o->format] : NULL;
	const struct format *f = NULL;
	int err = format_choose(name, o->output, &f, diag);

	if (err < 0)
		return err;
	*ret_json = strcmp(f->name, "json") == 0;
	if (*ret_json || strcmp(f->name, "text") == 0)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "use .txt or .json, or -f",
			"diff has no %s format, which the extension of '%s' selects", f->name,
			o->output);
}

static int write_diff(void *ctx, FILE *out, struct diag *diag)
{
	const struct output *o = ctx;
	uint64_t rows = o->opts->limit || o->json || !terminal_is(out) ? o->opts->limit
								       : FORMAT_TERMINAL_ROWS;
	size_t limit = (size_t)rows;
	int err = o->json ? diff_write_json(o->diff, limit, out)
			  : diff_write_text(o->diff, limit, out);

	return err ? diag_errno(diag, -err, "cannot write the comparison") : 0;
}

int compare_run(const struct diff_side side[DIFF_SIDES], const struct compare_opts *o, FILE *stream,
		struct diag *diag)
{
	enum snapshot_clock clock = o->clock ? (enum snapshot_clock)(o->clock - 1)
					     : side[DIFF_BEFORE].snapshot->clock;
	_cleanup_(diff_freep) struct diff *d = NULL;
	struct output out = {.opts = o};
	int err = compare_format(o, &out.json, diag);

	if (!err)
		err = diff_check(side, &(struct diff_check){o->clock != 0, o->force}, diag);

	if (err < 0)
		return err;
	err = diff_build(side, clock, &d);
	if (err < 0)
		return diag_errno(diag, -err, "cannot compare");
	out.diff = d;
	return saved_write(o->output, stream, write_diff, &out, diag);
}
