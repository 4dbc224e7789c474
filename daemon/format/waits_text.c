// SPDX-License-Identifier: BSD-2-Clause
/* Waiting, as text: see waits_text.h. */
#include "format/waits_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "format/table.h"

int waits_not_measured(struct diag *diag)
{
	return diag_set(diag, -ENODATA, PYP_EXIT_FAILURE,
			"it is not measured by --continuous, nor if no thread list was found",
			"why threads waited was not measured");
}

void waits_print_seconds(uint64_t ns, FILE *out)
{
	if (ns)
		fprintf(out, " %8.3f", table_seconds(ns));
	else
		fputs("         ", out);
}

void waits_print_other(const struct snapshot *s, FILE *out)
{
	for (uint32_t i = 0; i < s->ntargets; i++) {
		const struct snapshot_waits *w = &s->targets[i].waits;

		for (uint32_t k = 0; k < w->nother; k++)
			fprintf(out, "   other: %.3f s in %" PRIu64 " waits for %s\n",
				table_seconds(w->other[k].ns), w->other[k].n, w->other[k].name);
		if (w->measured && !w->gil_known)
			fprintf(out,
				"   process %" PRIu32 ": the GIL was not found; waiting for it "
				"is in lock\n",
				s->targets[i].pid);
	}
}

struct waits_of_thread *waits_of_threads_new(const struct snapshot *s)
{
	struct waits_of_thread *ret = calloc((size_t)s->nthreads + 1, sizeof(*ret));

	for (int c = 0; c < COLUMNS && ret; c++) {
		if (!(COLUMN_WAITS & COLUMN_BIT(c)) || !s->columns[c])
			continue;
		for (uint32_t i = 0; i < s->nnodes; i++)
			ret[s->nodes[i].thread].of[c] += s->columns[c][i];
	}
	return ret;
}
