// SPDX-License-Identifier: BSD-2-Clause
/*
 * Coroutines, generators and greenlets, one line per function, with the sums over its instances
 * from their first call to their end: time running (with callees and awaited coroutines), time
 * suspended and lifetime. Sorted and restricted like functions: steps (entries and resumptions)
 * count as calls, instances as primitive calls, time running as internal time, lifetime as
 * cumulative time. Instances move between threads, so there are no figures per thread.
 */
#include "format/coroutines.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/listing.h"
#include "format/names.h"
#include "format/writers.h"
#include "stats/reduce.h"

uint64_t coroutine_open(const struct snapshot_coro *c)
{
	uint64_t all = c->started + c->partial;

	return all > c->ended ? all - c->ended : 0;
}

bool coroutine_selected(const struct snapshot *s, const struct snapshot_coro *c,
			const struct format_opts *o)
{
	if (o->filter.tid || (o->filter.pid && o->filter.pid != c->pid))
		return false;
	return !o->only_my_code || !reduce_is_library(s->funcs[c->func].filename);
}

static int fill_row(const struct snapshot *s, size_t i, const struct format_opts *o,
		    struct table_row *r)
{
	const struct snapshot_coro *c = &s->coros[i];
	const struct snapshot_func *f = &s->funcs[c->func];

	r->file = name_normal(f->pseudo ? "~" : f->filename, NAME_KEEP_SURROGATES);
	r->name = name_normal(f->name, NAME_KEEP_SURROGATES);
	r->line = f->pseudo ? 0 : f->firstlineno;
	r->std = r->file && r->name ? name_std(r->file, r->line, r->name) : NULL;
	r->nc = c->steps;
	r->cc = c->started + c->partial;
	r->tt = c->running[o->clock];
	r->ct = c->running[SNAPSHOT_WALL] + c->suspended;
	r->listed = coroutine_selected(s, c, o);
	return r->std ? 0 : -ENOMEM;
}

static void print_known(uint64_t ns, FILE *out)
{
	if (ns == SNAPSHOT_MIN_UNKNOWN)
		fprintf(out, " %8s", "-");
	else
		fprintf(out, " %8.3f", table_seconds(ns));
}

static void print_lifetimes(const struct snapshot_coro *c, FILE *out)
{
	if (!c->lifetimes) {
		fprintf(out, " %8s %8s %8s", "-", "-", "-");
		return;
	}
	print_known(c->min, out);
	print_known(c->total / c->lifetimes, out);
	print_known(c->max, out);
}

static void print_row(const struct snapshot *s, const struct listing_row *r,
		      const struct format_opts *o, FILE *out)
{
	const struct snapshot_coro *c = &s->coros[r->i];
	uint64_t open = coroutine_open(c);

	(void)o;
	fprintf(out, "%9" PRIu64 " %6" PRIu64 "%s %9" PRIu64 " %9.3f %9.3f %9.3f %9.3f", r->row->cc,
		open, c->ends_hidden && open ? "?" : " ", c->steps,
		table_seconds(c->running[SNAPSHOT_CPU]), table_seconds(c->running[SNAPSHOT_WALL]),
		table_seconds(c->suspended), table_seconds(r->row->ct));
	print_lifetimes(c, out);
	fprintf(out, "  %-9s ",
		c->kind == SNAPSHOT_ASYNC_GENERATOR ? "async gen" : snapshot_coro_kinds[c->kind]);
	name_print(out, r->row->std, 0);
	fputc('\n', out);
}

static void print_notes(const struct snapshot *s, const struct selection *rows, FILE *out)
{
	bool hidden = false;
	uint64_t forgotten = 0;

	for (size_t i = 0; i < rows->n; i++) {
		const struct snapshot_coro *c = &s->coros[rows->order[i]];

		hidden |= c->ends_hidden && coroutine_open(c);
	}
	for (uint32_t i = 0; i < s->ntargets; i++)
		forgotten += s->targets[i].forgotten;
	if (hidden)
		fputs("?: before CPython 3.11 an end looks like a suspension; some have ended\n",
		      out);
	if (forgotten)
		fprintf(out,
			"%" PRIu64 " more were too many at a time to be followed to their end\n",
			forgotten);
}

int coroutines_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		     FILE *out, struct diag *diag)
{
	const struct listing l = {
		.n = s->ncoros,
		.fill = fill_row,
		.header = "instances   open      steps       cpu   running suspended"
			  "     total shortest     mean  longest  kind      f"
			  "ilename:lineno(function)",
		.print = print_row,
		.notes = print_notes,
		.none = o->filter.tid
				? "coroutines are not a thread's: they move between threads\n\n"
				: "no coroutines, generators or greenlets\n\n",
	};

	(void)v;
	return listing_write(&l, s, o, out, diag);
}

static const char csv_header[] =
	"kind,instances,started,ended,open,steps,running_cpu_ns,running_wall_ns,suspended_ns,"
	"lifetimes,lifetimes_total_ns,lifetimes_min_ns,lifetimes_max_ns,file,line,name,qualname,"
	"variant,pid\r\n";

/* Writes an empty field if no instance has ended or the probe cost exceeds the figure. */
static void put_csv_known(const struct snapshot_coro *c, uint64_t ns, FILE *out)
{
	fputc(',', out);
	if (c->lifetimes && ns != SNAPSHOT_MIN_UNKNOWN)
		fprintf(out, "%" PRIu64, ns);
}

static void put_csv_row(const struct snapshot *s, const struct snapshot_coro *c, FILE *out)
{
	const struct snapshot_func *f = &s->funcs[c->func];

	fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", snapshot_coro_kinds[c->kind],
		c->started + c->partial, c->started, c->ended);
	if (!c->ends_hidden)
		fprintf(out, "%" PRIu64, coroutine_open(c));
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
		c->steps, c->running[SNAPSHOT_CPU], c->running[SNAPSHOT_WALL], c->suspended,
		c->lifetimes, c->total);
	put_csv_known(c, c->min, out);
	put_csv_known(c, c->max, out);
	fputc(',', out);
	name_print_csv(out, f->filename);
	fprintf(out, ",%" PRId32 ",", f->firstlineno);
	name_print_csv(out, f->name);
	fputc(',', out);
	name_print_csv(out, f->qualname);
	fprintf(out, ",%" PRIu32 ",%" PRIu32 "\r\n", f->variant, c->pid);
}

int coroutines_csv_write(const struct snapshot *s, const struct view *v,
			 const struct format_opts *o, FILE *out, struct diag *diag)
{
	(void)v, (void)diag;
	fputs(csv_header, out);
	for (uint32_t i = 0; i < s->ncoros; i++)
		if (coroutine_selected(s, &s->coros[i], o))
			put_csv_row(s, &s->coros[i], out);
	return 0;
}
