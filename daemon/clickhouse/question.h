/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions about stored profiles as SQL: those of a span whose labels match. All values are
 * quoted; answers are in the format RowBinary (answer.h reads them). Pure.
 */
#ifndef PYPROF_CLICKHOUSE_QUESTION_H
#define PYPROF_CLICKHOUSE_QUESTION_H

#include <stdbool.h>
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

/* Hours since 1970: [first, end) */
struct question_hours {
	uint32_t first, end;
};

struct question {
	const char *database;	  /* valid, see tables_database_valid(); borrowed */
	uint64_t from_s, until_s; /* UNIX time: intervals that start in [from_s, until_s) */
	/* Within the span, in order: their sums are taken from `hours`. Borrowed. */
	const struct question_hours *hours;
	unsigned int nhours;
	uint64_t hours_used; /* of rollup_ranges() */
	bool profiles_only;  /* do not look for hours */
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

/* Returns whether `hours` has the labels of all filters. */
bool question_fits_hours(const struct question *q);
/* Returns whether it has this label. */
bool question_label_in_hours(const char *label);

/* All labels of a profile as two arrays: those with a column of their own, and the others */
#define QUESTION_LABEL_NAMES                                                                       \
	"arrayConcat(['service', 'host', 'version', 'mode', 'options'], `labels.name`)"
#define QUESTION_LABEL_VALUES "arrayConcat([service, host, version, mode, options], `labels.value`)"

/* How many profiles there are, of how many hosts and processes: see answer_summary(). */
void question_write_summary(const struct question *q, FILE *out);
/* The least and the greatest value of each label: see answer_labels(). */
void question_write_labels(const struct question *q, FILE *out);
/* Sums of figures by function and name: see answer_figures(). */
void question_write_figures(const struct question *q, FILE *out);
/* Sums by stack, and of its details by name */
void question_write_samples(const struct question *q, FILE *out);
void question_write_details(const struct question *q, FILE *out);
/* The stacks and functions of these samples */
void question_write_stacks(const struct question *q, FILE *out);
void question_write_functions(const struct question *q, FILE *out);

/*
 * A label's values: each with numbers of hosts, processes and profiles, CPU and wall time. q->nhours
 * must be 0 if `hours` does not have the label.
 */
void question_write_values(const struct question *q, const char *label, FILE *out);

#endif
