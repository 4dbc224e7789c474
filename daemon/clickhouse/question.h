/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions about stored profiles as SQL: those of a span whose labels match. All values are
 * quoted; answers are in the format RowBinary (answer.h reads them). Pure.
 */
#ifndef PYPROF_CLICKHOUSE_QUESTION_H
#define PYPROF_CLICKHOUSE_QUESTION_H

#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "interval/interval.h"

#define QUESTION_FILTERS_MAX 32

enum filter_op { FILTER_IS, FILTER_IS_NOT, FILTER_MATCHES };

struct question_filter {
	char name[INTERVAL_LABEL_NAME_MAX + 1];
	enum filter_op op;
	const char *value; /* borrowed */
};

struct question {
	const char *database;	  /* valid, see tables_database_valid(); borrowed */
	uint64_t from_s, until_s; /* UNIX time: intervals that start in [from_s, until_s) */
	struct question_filter filters[QUESTION_FILTERS_MAX];
	unsigned int nfilters;
};

/*
 * Adds a filter: "NAME=VALUE", "NAME!=VALUE" or "NAME~REGEX". The text is borrowed. Returns 0,
 * -EINVAL or -E2BIG, with *diag set (exit code 2).
 */
int question_filter_add(struct question *q, const char *text, struct diag *diag);
/* Removes all filters by this name. */
void question_filter_remove(struct question *q, const char *name);

/* Writes a string literal. */
void question_write_string(const char *s, FILE *out);

/* What the profiles have in common, one row: see answer_summary(). */
void question_write_summary(const struct question *q, FILE *out);
/* Sums of figures by function and name: see answer_figures(). */
void question_write_figures(const struct question *q, FILE *out);
/* Sums by stack; columns: bit mask, see base/column.h. */
void question_write_samples(const struct question *q, uint64_t columns, FILE *out);
/* The stacks and functions of these samples */
void question_write_stacks(const struct question *q, FILE *out);
void question_write_functions(const struct question *q, FILE *out);

/* A label's values: each with numbers of hosts, processes and profiles, CPU and wall time. */
void question_write_values(const struct question *q, const char *label, FILE *out);

#endif
