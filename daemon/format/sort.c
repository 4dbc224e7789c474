// SPDX-License-Identifier: BSD-2-Clause
/* pstats' sort keys: see sort.h. */
#include "format/sort.h"

#include <errno.h>
#include <string.h>

typedef int (*compare_fn)(const struct table_row *l, const struct table_row *r);

struct key {
	const char *word;
	const char *title;
	compare_fn compare;
};

/* Python compares text by code point; the byte order of UTF-8 is the same. */
static int by_file(const struct table_row *l, const struct table_row *r)
{
	return strcmp(l->file, r->file);
}

static int by_name(const struct table_row *l, const struct table_row *r)
{
	return strcmp(l->name, r->name);
}

static int by_std(const struct table_row *l, const struct table_row *r)
{
	return strcmp(l->std, r->std);
}

static int by_line(const struct table_row *l, const struct table_row *r)
{
	return (l->line > r->line) - (l->line < r->line);
}

static int by_name_file_line(const struct table_row *l, const struct table_row *r)
{
	int c = by_name(l, r);

	if (!c)
		c = by_file(l, r);
	return c ? c : by_line(l, r);
}

/* Figures sort largest first. */
static int by_calls(const struct table_row *l, const struct table_row *r)
{
	return (l->nc < r->nc) - (l->nc > r->nc);
}

static int by_primitive_calls(const struct table_row *l, const struct table_row *r)
{
	return (l->cc < r->cc) - (l->cc > r->cc);
}

static int by_time(const struct table_row *l, const struct table_row *r)
{
	return (l->tt < r->tt) - (l->tt > r->tt);
}

static int by_cumulative(const struct table_row *l, const struct table_row *r)
{
	return (l->ct < r->ct) - (l->ct > r->ct);
}

/* In the order of pstats, which determines the abbreviations. */
static const struct key sort_keys[] = {
	{"calls", "call count", by_calls},
	{"ncalls", "call count", by_calls},
	{"cumtime", "cumulative time", by_cumulative},
	{"cumulative", "cumulative time", by_cumulative},
	{"filename", "file name", by_file},
	{"line", "line number", by_line},
	{"module", "file name", by_file},
	{"name", "function name", by_name},
	{"nfl", "name/file/line", by_name_file_line},
	{"pcalls", "primitive call count", by_primitive_calls},
	{"stdname", "standard name", by_std},
	{"time", "internal time", by_time},
	{"tottime", "internal time", by_time},
};
#define NKEYS (sizeof(sort_keys) / sizeof(sort_keys[0]))

#define SORT_HINT                                                                                  \
	"keys: calls, ncalls, cumtime, cumulative, file, filename, line, module, name, nfl, "      \
	"pcalls, stdname, time, tottime, or an unambiguous abbreviation"

static size_t common_prefix(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/*
 * Returns whether the key at `at` makes the prefix ambiguous. pstats registers a key's prefixes,
 * longest first, until it finds one that an earlier key has registered; only that one becomes
 * ambiguous. So `cu` stands for cumtime although `cum` is ambiguous.
 */
static bool key_spoils(size_t at, const char *prefix, size_t len)
{
	size_t longest = 0;

	for (size_t i = 0; i < at; i++) {
		size_t n = common_prefix(sort_keys[i].word, sort_keys[at].word);

		longest = n > longest ? n : longest;
	}
	return longest == len && strncmp(sort_keys[at].word, prefix, len) == 0;
}

static int key_find(const char *prefix, size_t len)
{
	int ret = -ENOENT;

	for (size_t i = NKEYS; len && i-- > 0;) {
		if (key_spoils(i, prefix, len))
			return -ENOENT;
		if (strncmp(sort_keys[i].word, prefix, len) == 0)
			ret = (int)i;
	}
	return ret;
}

int sort_parse(const char *keys, struct sort *ret, struct diag *diag)
{
	struct sort sort = {0};
	const char *p = keys ? keys : "stdname";

	for (;;) {
		size_t len = strcspn(p, ",");
		int key = key_find(p, len);

		if (key < 0)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, SORT_HINT,
					"unknown or ambiguous sort key '%.*s'",
					(int)(len < 64 ? len : 64), p);
		if (sort.nkeys == SORT_MAX_KEYS)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, SORT_HINT,
					"more than %d sort keys", SORT_MAX_KEYS);
		sort.keys[sort.nkeys++] = (uint8_t)key;
		if (!p[len])
			break;
		p += len + 1;
	}
	*ret = sort;
	return 0;
}

const char *sort_key_name(size_t i)
{
	return i < NKEYS ? sort_keys[i].word : NULL;
}

void sort_print_title(const struct sort *sort, FILE *out)
{
	for (size_t i = 0; i < sort->nkeys; i++)
		fprintf(out, "%s%s", i ? ", " : "", sort_keys[sort->keys[i]].title);
}

int sort_compare(const struct sort *sort, const struct table_row *l, const struct table_row *r)
{
	for (size_t i = 0; i < sort->nkeys; i++) {
		int order = sort_keys[sort->keys[i]].compare(l, r);

		if (order)
			return order;
	}
	return 0;
}

struct sort_context {
	const struct sort *sort;
	const struct table *t;
};

/* Equal rows keep the table's order, because Python's sort is stable. */
static int compare_rows(const void *left, const void *right, void *arg)
{
	const struct sort_context *c = arg;
	uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;
	int order = sort_compare(c->sort, &c->t->rows[l], &c->t->rows[r]);

	if (order)
		return order;
	return (l > r) - (l < r);
}

static void reverse_indices(uint32_t *a, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t tmp = a[i];

		a[i] = a[n - 1 - i];
		a[n - 1 - i] = tmp;
	}
}

int sort_rows(const struct sort *sort, bool reverse, const struct table *t, uint32_t **ret,
	      size_t *ret_n)
{
	struct sort_context c = {.sort = sort, .t = t};
	uint32_t *order = calloc(t->nrows + 1, sizeof(*order));
	size_t n = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < t->nrows; i++)
		if (t->rows[i].listed)
			order[n++] = (uint32_t)i;
	qsort_r(order, n, sizeof(*order), compare_rows, &c);
	if (reverse)
		reverse_indices(order, n);
	*ret = order;
	*ret_n = n;
	return 0;
}
