// SPDX-License-Identifier: BSD-2-Clause
/* Self time by source line: see lines.h. */
#include "snapshot/lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add(struct snapshot_line *to, const struct snapshot_line *more)
{
	to->samples += more->samples;
	to->self_ns += more->self_ns;
	to->variance += more->variance;
}

static int by_line(const void *a, const void *b)
{
	const struct snapshot_line *x = a, *y = b;

	return x->line < y->line ? -1 : x->line > y->line;
}

/* NULL: the function does not have the line. */
static struct snapshot_line *find(const struct snapshot_func *f, const struct snapshot_line *key)
{
	return f->nlines ? bsearch(key, f->lines, f->nlines, sizeof(*key), by_line) : NULL;
}

/* Merges the lines that the function does not have; `missing` is their number. */
static int insert(struct snapshot *s, struct snapshot_func *f, const struct snapshot_line *v,
		  uint32_t n, uint32_t missing)
{
	const uint32_t size = f->nlines + missing;
	struct snapshot_line *all = snapshot_alloc(s, size, sizeof(*all));
	uint32_t at = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0, k = 0; i < n || k < f->nlines;) {
		if (i == n || (k < f->nlines && f->lines[k].line < v[i].line))
			all[at++] = f->lines[k++];
		else if (k < f->nlines && f->lines[k].line == v[i].line)
			i++;
		else
			all[at++] = v[i++];
	}
	f->lines = all;
	f->nlines = size;
	return 0;
}

int snapshot_add_lines(struct snapshot *s, struct snapshot_func *f, const struct snapshot_line *v,
		       uint32_t n)
{
	uint32_t missing = 0;

	/* Processes of one program have mostly the same lines, which need no memory. */
	for (uint32_t i = 0; i < n; i++)
		if (!find(f, &v[i]))
			missing++;
	if (missing == n)
		return n ? insert(s, f, v, n, missing) : 0;
	for (uint32_t i = 0; i < n; i++) {
		struct snapshot_line *have = find(f, &v[i]);

		if (have)
			add(have, &v[i]);
	}
	return missing ? insert(s, f, v, n, missing) : 0;
}

double snapshot_line_error(const struct snapshot_line *line)
{
	return sqrt(line->variance);
}

uint64_t snapshot_line_part(const struct snapshot_line *line, const struct snapshot_line *sum,
			    uint64_t ns, uint64_t left)
{
	double part = line->line && sum->self_ns
			      ? (double)ns * (double)line->self_ns / (double)sum->self_ns
			      : 0;

	return part < (double)left ? (uint64_t)part : left;
}

bool snapshot_has_lines(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (s->funcs[i].nlines)
			return true;
	return false;
}

struct snapshot_line snapshot_lines_sum(const struct snapshot_func *f)
{
	struct snapshot_line sum = {.line = 0};

	for (uint32_t i = 0; i < f->nlines; i++)
		add(&sum, &f->lines[i]);
	return sum;
}
