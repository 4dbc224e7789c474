// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rows: the changing part of a live view, as compact as possible: JSON with a short array per
 * function and per thread, times in ns. Key names describe the arrays' elements. Calling contexts,
 * the largest part of a snapshot, are omitted. Restrictions do not remove rows here: they select
 * the functions whose callers are included.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/provenance.h"
#include "format/selection.h"
#include "format/writers.h"

static int put_string(FILE *out, const char *s)
{
	json_t *value = provenance_string(s);
	int err;

	if (!value)
		return -ENOMEM;
	err = json_dumpf(value, out, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	json_decref(value);
	return err < 0 && !ferror(out) ? -ENOMEM : 0;
}

#define FIRST COLUMN_WAITS_FIRST
#define END   COLUMN_WAITS_END

static void put_wait_columns(FILE *out)
{
	fputs(",\n\"wait_columns\":[", out);
	for (int c = FIRST; c < END; c++)
		fprintf(out, "%s\"%s\"", c > FIRST ? "," : "", column_table[c].name);
	fputs("]", out);
}

/* Writes the last element of a row: NULL columns have no figures. */
static void put_waits(uint64_t *const columns[COLUMNS], uint64_t measured, size_t i, FILE *out)
{
	if (!(measured & COLUMN_WAITS)) {
		fputs(",null]", out);
		return;
	}
	fputs(",[", out);
	for (int c = FIRST; c < END; c++)
		fprintf(out, "%s%" PRIu64, c > FIRST ? "," : "", columns[c] ? columns[c][i] : 0);
	fputs("]]", out);
}

/* Writes all but the last element. */
static int put_function(const struct snapshot_func *f, const struct view_row *r, FILE *out)
{
	fputc('[', out);
	if (put_string(out, f->pseudo ? "~" : f->filename) < 0)
		return -ENOMEM;
	fprintf(out, ",%" PRId32 ",", f->pseudo ? 0 : f->firstlineno);
	if (put_string(out, f->name) < 0)
		return -ENOMEM;
	fputc(',', out);
	if (put_string(out, f->qualname) < 0)
		return -ENOMEM;
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
		r->ncalls, r->pcalls, r->tot[SNAPSHOT_CPU], r->cum[SNAPSHOT_CPU],
		r->tot[SNAPSHOT_WALL], r->cum[SNAPSHOT_WALL]);
	return 0;
}

static int put_functions(const struct view *v, FILE *out)
{
	fputs(",\n\"function_columns\":[\"file\",\"line\",\"name\",\"qualname\",\"ncalls\","
	      "\"pcalls\",\"tottime_cpu\",\"cumtime_cpu\",\"tottime_wall\",\"cumtime_wall\","
	      "\"waits\"],\n"
	      "\"functions\":[",
	      out);
	for (size_t i = 0; i < v->nrows; i++) {
		fputs(i ? ",\n" : "\n", out);
		if (put_function(&v->snapshot->funcs[v->rows[i].func], &v->rows[i], out) < 0)
			return -ENOMEM;
		put_waits(v->self, v->snapshot->measured, i, out);
	}
	fputs("]", out);
	return 0;
}

/* Writes the elements of `functions`, but no qualified name and waits, for calls from one caller. */
static int put_caller(const struct table *cpu, const struct table *wall, size_t i, FILE *out)
{
	const struct table_edge *c = &cpu->edges[i], *w = &wall->edges[i];
	const struct table_row *r = &cpu->rows[c->caller];

	fputc('[', out);
	if (put_string(out, r->file) < 0)
		return -ENOMEM;
	fprintf(out, ",%" PRId32 ",", r->line);
	if (put_string(out, r->name) < 0)
		return -ENOMEM;
	fprintf(out,
		",null,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		",null]",
		c->nc, c->cc, c->tt, c->ct, w->tt, w->ct);
	return 0;
}

/*
 * Writes the callers of the functions that the restrictions select. Both clocks' tables have the
 * same edges.
 */
static int put_callers(const struct view *v, const struct format_opts *o, FILE *out,
		       struct diag *diag)
{
	_cleanup_(table_freep) struct table *cpu = NULL, *wall = NULL;
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_free_ bool *picked = NULL;
	const char *comma = "\n";
	int err = table_build(v, SNAPSHOT_CPU, &cpu);

	if (!err)
		err = table_build(v, SNAPSHOT_WALL, &wall);
	if (!err)
		err = selection_init(&rows, cpu, o, diag);
	if (err < 0)
		return err;
	picked = calloc(cpu->nrows + 1, sizeof(*picked));
	if (!picked)
		return -ENOMEM;
	for (size_t i = 0; i < rows.n; i++)
		picked[rows.order[i]] = true;
	fputs(",\n\"callers\":[", out);
	for (size_t i = 0; i < cpu->nedges && !err; i++) {
		if (!picked[cpu->edges[i].callee])
			continue;
		fputs(comma, out);
		comma = ",\n";
		err = put_caller(cpu, wall, i, out);
	}
	fputs("]", out);
	return err;
}

/* Sums over the contexts of each thread */
struct thread_sums {
	uint64_t *calls, *waits[COLUMNS]; /* one allocation */
};

static void thread_sums_deinit(struct thread_sums *sums)
{
	free(sums->calls);
}

static int thread_sums_init(const struct snapshot *s, struct thread_sums *ret)
{
	size_t n = (size_t)s->nthreads + 1;

	*ret = (struct thread_sums){.calls = calloc(n * (1 + END - FIRST), sizeof(uint64_t))};
	if (!ret->calls)
		return -ENOMEM;
	for (int c = FIRST; c < END; c++)
		ret->waits[c] = ret->calls + n * (size_t)(1 + c - FIRST);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		uint32_t thread = s->nodes[i].thread;

		ret->calls[thread] += s->nodes[i].calls;
		for (int c = FIRST; c < END; c++)
			ret->waits[c][thread] += snapshot_figure(s, c, i);
	}
	return 0;
}

static int put_threads(const struct snapshot *s, const struct view_filter *filter, FILE *out)
{
	_cleanup_(thread_sums_deinit) struct thread_sums sums = {0};
	bool first = true;

	if (thread_sums_init(s, &sums) < 0)
		return -ENOMEM;
	fputs(",\n\"thread_columns\":[\"pid\",\"tid\",\"name\",\"alive\",\"calls\",\"cpu\","
	      "\"wall\",\"waits\"],\n\"threads\":[",
	      out);
	for (uint32_t i = 0; i < s->nthreads; i++) {
		const struct snapshot_thread *t = &s->threads[i];

		if (!view_selects(filter, t))
			continue;
		fprintf(out, "%s[%" PRIu32 ",%" PRIu32 ",", first ? "\n" : ",\n", t->pid, t->tid);
		first = false;
		if (put_string(out, t->name ? t->name : "") < 0)
			return -ENOMEM;
		fprintf(out, ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64, t->alive ? "true" : "false",
			sums.calls[i], t->total[SNAPSHOT_CPU], t->total[SNAPSHOT_WALL]);
		put_waits(sums.waits, s->measured, i, out);
	}
	fputs("]\n}\n", out);
	return 0;
}

int rows_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag)
{
	json_t *head = provenance_json(s, o, "pyprofd-rows");
	int err;

	if (!head)
		return -ENOMEM;
	fputc('{', out);
	err = json_dumpf(head, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_EMBED);
	json_decref(head);
	if (err < 0 && !ferror(out))
		return -ENOMEM;
	put_wait_columns(out);
	err = put_functions(v, out);
	if (!err && o->nrestrict)
		err = put_callers(v, o, out, diag);
	return err < 0 ? err : put_threads(s, &o->filter, out);
}
