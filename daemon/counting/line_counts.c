// SPDX-License-Identifier: BSD-2-Clause
/* Self time by source line: see line_counts.h. */
#include "counting/line_counts.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "snapshot/lines.h"
#include "stack/codes.h"

/* After the first failure to read a table, the number of samples until the next attempt; doubled
 * after each further one, up to MAX. */
#define WAIT_FIRST 64u
#define WAIT_MAX   65536u

void line_counts_forget_all(struct line_counts *c)
{
	for (uint32_t i = 0; i < c->ntables; i++)
		code_lines_deinit(&c->tables[i].lines);
	map_clear(&c->table_at);
	c->ntables = 0;
	c->bytes = 0;
}

void line_counts_clear(struct line_counts *c)
{
	map_clear(&c->at);
	c->n = 0;
	c->dropped = 0;
}

void line_counts_deinit(struct line_counts *c)
{
	line_counts_forget_all(c);
	map_deinit(&c->table_at);
	map_deinit(&c->at);
	free(c->tables);
	free(c->v);
	*c = (struct line_counts){0};
}

/* ---- line tables ---- */

static size_t table_bytes(const struct line_table *t)
{
	return sizeof(*t) + t->lines.n * sizeof(*t->lines.v);
}

void line_counts_forget(struct line_counts *c, uint64_t code)
{
	struct line_table *t, *last;
	uint32_t at;

	if (!map_get(&c->table_at, code, &at))
		return;
	t = &c->tables[at];
	last = &c->tables[--c->ntables];
	c->bytes -= table_bytes(t);
	code_lines_deinit(&t->lines);
	(void)map_del(&c->table_at, code);
	if (t == last)
		return;
	*t = *last;
	(void)map_put(&c->table_at, t->code, at); /* replaces, so it cannot fail */
}

static struct line_table *table_new(struct line_counts *c, uint64_t code)
{
	uint32_t want = c->tables_room ? 2 * c->tables_room : 64;

	if (c->ntables == c->tables_room) {
		struct line_table *v = reallocarray(c->tables, want, sizeof(*v));

		if (!v)
			return NULL;
		c->tables = v;
		c->tables_room = want;
	}
	if (map_put(&c->table_at, code, c->ntables) < 0)
		return NULL;
	c->tables[c->ntables] = (struct line_table){.code = code};
	c->bytes += sizeof(*c->tables);
	return &c->tables[c->ntables++];
}

/* The table of another code object can be at the address meanwhile; it is not used. */
static void table_read(struct line_counts *c, struct line_table *t, int32_t firstlineno)
{
	struct code_lines lines;
	int r = c->read(c->ctx, t->code, &lines);

	if (r == 0 && lines.n && lines.firstlineno == firstlineno) {
		t->lines = lines;
		c->bytes += lines.n * sizeof(*lines.v);
		return;
	}
	if (r == 0)
		code_lines_deinit(&lines);
	t->wait = t->failed < 10 ? WAIT_FIRST << t->failed++ : WAIT_MAX;
}

static const struct line_table *table_get(struct line_counts *c, uint64_t code, int32_t firstlineno)
{
	struct line_table *t;
	uint32_t at;

	if (map_get(&c->table_at, code, &at)) {
		t = &c->tables[at];
	} else {
		if (c->bytes >= LINE_COUNTS_BYTES_MAX)
			line_counts_forget_all(c);
		t = table_new(c, code);
	}
	if (!t || t->lines.n)
		return t;
	if (t->wait)
		t->wait--;
	else
		table_read(c, t, firstlineno);
	return t;
}

/* ---- counts ---- */

static uint64_t count_key(uint32_t func, int32_t line)
{
	return (uint64_t)func << 32 | (uint32_t)line;
}

static struct line_count *count_get(struct line_counts *c, uint32_t func, int32_t line)
{
	uint32_t at, want = c->room ? 2 * c->room : 256;

	if (map_get(&c->at, count_key(func, line), &at))
		return &c->v[at];
	if (c->n == LINE_COUNTS_MAX)
		return NULL;
	if (c->n == c->room) {
		struct line_count *v = reallocarray(c->v, want, sizeof(*v));

		if (!v)
			return NULL;
		c->v = v;
		c->room = want;
	}
	if (map_put(&c->at, count_key(func, line), c->n) < 0)
		return NULL;
	c->v[c->n] = (struct line_count){.func = func, .line = line};
	return &c->v[c->n++];
}

void line_counts_add(struct line_counts *c, struct codes *codes, const struct event_sample *s)
{
	const struct line_table *t = NULL;
	struct line_count *count;
	uint32_t func;

	if (!c->read || s->first || !s->count || event_sample_natives(s))
		return;
	func = codes_func(codes, s->codes[0]);
	if (func_is_pseudo(func))
		return;
	if (s->offset != PYP_SAMPLE_NO_OFFSET)
		t = table_get(c, s->codes[0], funcs_identity(&codes->funcs, func).firstlineno);
	count = count_get(c, func, t && t->lines.n ? code_lines_find(&t->lines, s->offset) : 0);
	if (!count) {
		c->dropped++;
		return;
	}
	count->samples++;
	count->ns += s->period;
}

/* ---- the snapshot ---- */

static int by_func(const void *a, const void *b)
{
	const struct line_count *x = a, *y = b;

	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static struct line_count *sorted(const struct line_counts *c)
{
	struct line_count *v = reallocarray(NULL, (size_t)c->n + 1, sizeof(*v));

	if (!v)
		return NULL;
	if (c->n)
		memcpy(v, c->v, c->n * sizeof(*v));
	qsort(v, c->n, sizeof(*v), by_func);
	return v;
}

int line_counts_take(const struct line_counts *c, const uint32_t *func_map, struct snapshot *s,
		     uint64_t *ret_dropped)
{
	_cleanup_free_ struct line_count *v = sorted(c);
	_cleanup_free_ struct snapshot_line *lines =
		reallocarray(NULL, (size_t)c->n + 1, sizeof(*lines));
	int r = v && lines ? 0 : -ENOMEM;

	*ret_dropped += c->dropped;
	for (uint32_t i = 0, n; r == 0 && i < c->n; i += n) {
		const uint32_t func = func_map[v[i].func];

		for (n = 0; i + n < c->n && v[i + n].func == v[i].func; n++) {
			const struct line_count *from = &v[i + n];

			lines[n] = (struct snapshot_line){
				.line = from->line,
				.samples = from->samples,
				.self_ns = from->ns,
				.variance =
					(double)from->ns * (double)from->ns / (double)from->samples,
			};
			*ret_dropped += func == SNAPSHOT_NONE ? from->samples : 0;
		}
		if (func != SNAPSHOT_NONE)
			r = snapshot_add_lines(s, &s->funcs[func], lines, n);
	}
	return r;
}
