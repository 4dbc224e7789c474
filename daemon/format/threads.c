// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads: one line each, on both clocks, named `process:thread(name)` like `file:line(name)` of
 * functions.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/listing.h"
#include "format/names.h"
#include "format/screen.h"
#include "format/writers.h"

#define NAME_WIDTH 20

static int fill_row(const struct snapshot *s, size_t i, const struct format_opts *o,
		    struct table_row *r)
{
	const struct snapshot_thread *thread = &s->threads[i];

	if (asprintf(&r->file, "%" PRIu32, thread->pid) < 0) {
		r->file = NULL;
		return -ENOMEM;
	}
	r->name = name_normal(thread->name, NAME_KEEP_SURROGATES);
	r->line = (int32_t)thread->tid;
	r->std = r->name ? name_std(r->file, r->line, r->name) : NULL;
	r->tt = r->ct = thread->total[o->clock];
	r->listed = view_selects(&o->filter, thread);
	return r->std ? 0 : -ENOMEM;
}

static void count_calls(const struct snapshot *s, struct table_row *rows)
{
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->func != SNAPSHOT_NONE && snapshot_func_is_gc(&s->funcs[n->func]))
			continue;
		rows[n->thread].nc += n->calls;
		rows[n->thread].cc += n->calls;
	}
}

/*
 * Clamped at 0: the two clocks are read one after the other, so rounding can make the difference
 * negative.
 */
static double waited(const struct snapshot_thread *thread)
{
	if (thread->total[SNAPSHOT_CPU] > thread->total[SNAPSHOT_WALL])
		return 0;
	return table_seconds(thread->total[SNAPSHOT_WALL] - thread->total[SNAPSHOT_CPU]);
}

static void print_row(const struct snapshot *s, const struct listing_row *r,
		      const struct format_opts *o, FILE *out)
{
	const struct snapshot_thread *thread = &s->threads[r->i];
	double share = r->total ? 100.0 * (double)r->row->ct / (double)r->total : 0;

	fprintf(out, "%7" PRIu32 " %7" PRIu32 " %9" PRIu64 " %9.3f %9.3f %9.3f ", thread->pid,
		thread->tid, r->row->nc, table_seconds(thread->total[SNAPSHOT_CPU]),
		table_seconds(thread->total[SNAPSHOT_WALL]), waited(thread));
	fprintf(out, "%s%5.1f%%%s ", share < 1 ? screen_dim(o) : "", share, screen_plain(o));
	screen_fit(out, r->row->name, thread->alive ? NAME_WIDTH : NAME_WIDTH - 2);
	fputs(thread->alive ? "\n" : " -\n", out);
}

int threads_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		  FILE *out, struct diag *diag)
{
	const struct listing l = {
		.n = s->nthreads,
		.fill = fill_row,
		.complete = count_calls,
		.header = "    pid     tid     calls       cpu      wall      wait  share thread "
			  "(-: ended)",
		.print = print_row,
		.none = "",
	};

	(void)v;
	return listing_write(&l, s, o, out, diag);
}
