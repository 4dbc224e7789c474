// SPDX-License-Identifier: BSD-2-Clause
/*
 * pstats: the file that cProfile's dump_stats() writes, for pstats.Stats(FILE) of any Python 3.
 *
 * The file is one marshal object, a dictionary
 *
 * 	{(file, line, name): (pcalls, ncalls, tottime, cumtime, {caller: (ncalls, pcalls, …)})}
 *
 * in which a caller's tuple has the two counts in the opposite order, and times are float seconds.
 * pstats takes every entry for a function, so the provenance cannot be inside. It follows as a
 * second object, because marshal.load() reads one object and ignores the rest of the file. The
 * second object is the header dictionary of the JSON format; a second marshal.load() on the open
 * file returns it.
 *
 * Restrictions leave out functions but not their entries as callers. The reader determines the
 * order.
 *
 * As with cProfile, pstats refuses to load a profile without functions.
 */
#include <errno.h>
#include <string.h>

#include "format/provenance.h"
#include "format/selection.h"
#include "format/writers.h"

/* Since 3.4, an object with this flag gets the next number, and later objects can refer to it. */
#define FLAG_REF 0x80

struct marshal {
	FILE *out;
	const struct table *t;
	uint32_t *refs; /* per row: the number of its key; SNAPSHOT_NONE: not written yet */
	uint32_t nrefs;
};

static void put_u32(FILE *out, uint32_t n)
{
	for (int i = 0; i < 4; i++)
		fputc(n >> 8 * i & 0xff, out);
}

/* Numbers above 31 bits are written in digits of 15 bits. */
static void put_int(FILE *out, uint64_t n)
{
	uint32_t digits = 0;

	if (n <= INT32_MAX) {
		fputc('i', out);
		put_u32(out, (uint32_t)n);
		return;
	}
	for (uint64_t rest = n; rest; rest >>= 15)
		digits++;
	fputc('l', out);
	put_u32(out, digits);
	for (; n; n >>= 15) {
		fputc((int)(n & 0xff), out);
		fputc((int)(n >> 8 & 0x7f), out);
	}
}

static void put_float(FILE *out, double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	fputc('g', out);
	put_u32(out, (uint32_t)bits);
	put_u32(out, (uint32_t)(bits >> 32));
}

static void put_str(FILE *out, const char *s)
{
	size_t n = strlen(s);

	fputc('u', out);
	put_u32(out, (uint32_t)n);
	fwrite(s, 1, n, out);
}

static void put_tuple(FILE *out, uint32_t n, int flags)
{
	fputc('(' | flags, out);
	put_u32(out, n);
}

/* A key is written once and then referred to, because callers repeat it very often. */
static void put_key(struct marshal *m, uint32_t row)
{
	const struct table_row *r = &m->t->rows[row];

	if (m->refs[row] != SNAPSHOT_NONE) {
		fputc('r', m->out);
		put_u32(m->out, m->refs[row]);
		return;
	}
	m->refs[row] = m->nrefs++;
	put_tuple(m->out, 3, FLAG_REF);
	put_str(m->out, r->file);
	fputc('i', m->out);
	put_u32(m->out, (uint32_t)r->line);
	put_str(m->out, r->name);
}

static void put_caller(struct marshal *m, const struct table_edge *e)
{
	put_key(m, e->caller);
	put_tuple(m->out, 4, 0);
	put_int(m->out, e->nc);
	put_int(m->out, e->cc);
	put_float(m->out, table_seconds(e->tt));
	put_float(m->out, table_seconds(e->ct));
}

/* Edges are sorted by callee; *edge is the first one that can be this row's. */
static void put_row(struct marshal *m, uint32_t row, const struct table_edge **edge)
{
	const struct table_row *r = &m->t->rows[row];
	const struct table_edge *end = m->t->edges + m->t->nedges;

	put_key(m, row);
	put_tuple(m->out, 5, 0);
	put_int(m->out, r->cc);
	put_int(m->out, r->nc);
	put_float(m->out, table_seconds(r->tt));
	put_float(m->out, table_seconds(r->ct));
	fputc('{', m->out);
	while (*edge < end && (*edge)->callee < row)
		++*edge;
	for (; *edge < end && (*edge)->callee == row; ++*edge)
		put_caller(m, *edge);
	fputc('0', m->out);
}

static void put_json(FILE *out, json_t *value);

static void put_json_object(FILE *out, json_t *object)
{
	const char *key;
	json_t *value;

	fputc('{', out);
	json_object_foreach(object, key, value)
	{
		put_str(out, key);
		put_json(out, value);
	}
	fputc('0', out);
}

static void put_json_array(FILE *out, json_t *array)
{
	json_t *value;
	size_t i;

	fputc('[', out);
	put_u32(out, (uint32_t)json_array_size(array));
	json_array_foreach(array, i, value) put_json(out, value);
}

/* Provenance contains no negative integers. */
static void put_json(FILE *out, json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		put_json_object(out, value);
		break;
	case JSON_ARRAY:
		put_json_array(out, value);
		break;
	case JSON_STRING:
		put_str(out, json_string_value(value));
		break;
	case JSON_INTEGER:
		put_int(out, (uint64_t)json_integer_value(value));
		break;
	case JSON_REAL:
		put_float(out, json_real_value(value));
		break;
	case JSON_TRUE:
		fputc('T', out);
		break;
	case JSON_FALSE:
		fputc('F', out);
		break;
	case JSON_NULL:
		fputc('N', out);
		break;
	}
}

/* Keeps the selected rows. Without restrictions that is all of them, and sorting is unnecessary. */
static int restrict_rows(struct table *t, const struct format_opts *o, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	int err = o->nrestrict ? selection_init(&rows, t, o, diag) : 0;

	if (err < 0 || !o->nrestrict)
		return err;
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].listed = false;
	for (size_t i = 0; i < rows.n; i++)
		t->rows[rows.order[i]].listed = true;
	return 0;
}

int pstats_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		 FILE *out, struct diag *diag)
{
	_cleanup_(table_freep) struct table *t = NULL;
	_cleanup_free_ uint32_t *refs = NULL;
	struct marshal m = {.out = out};
	const struct table_edge *edge;
	json_t *provenance;
	int err = table_build(v, o->clock, &t);

	if (!err)
		err = restrict_rows(t, o, diag);
	if (err < 0)
		return err;
	m.refs = refs = malloc((t->nrows + 1) * sizeof(*refs));
	provenance = provenance_json(s, o, "pyprofd-provenance");
	if (!refs || !provenance) {
		json_decref(provenance);
		return -ENOMEM;
	}
	memset(refs, 0xff, (t->nrows + 1) * sizeof(*refs));
	m.t = t;
	edge = t->edges;
	fputc('{', out);
	for (uint32_t i = 0; i < t->nrows; i++)
		if (t->rows[i].listed)
			put_row(&m, i, &edge);
	fputc('0', out);
	put_json(out, provenance);
	json_decref(provenance);
	return 0;
}
