/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data of a live view: the differences between two responses (format "rows") as rates and totals,
 * sorted and filtered, with one row selected. Pure: uses neither screen nor daemon.
 */
#ifndef PYPROFCTL_TOP_MODEL_H
#define PYPROFCTL_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "snapshot/snapshot.h"

enum top_view { TOP_FUNCTIONS, TOP_THREADS, TOP_CALLERS, TOP_VIEWS };

enum top_sort {
	TOP_BY_SELF, /* self time in the interval; threads: CPU time */
	TOP_BY_CUM,  /* cumulative time; threads: wall time */
	TOP_BY_RATE,
	TOP_BY_CALLS,
	TOP_BY_TOTTIME,
	TOP_BY_CUMTIME,
	TOP_BY_NAME,
	TOP_SORTS
};

extern const char *const top_sort_names[]; /* ends with NULL */

struct top_row {
	const char *key;		  /* file:line(name) or pid:tid(name), in full */
	const char *name;		  /* the same without directories */
	uint64_t calls, tottime, cumtime; /* since the start of tracing or the latest clear; ns */
	double rate;			  /* calls per second in the last interval */
	double self, cum;		  /* percent of the last interval */
};

struct top_model;

struct top_model *top_model_new(void);
void top_model_free(struct top_model *m);
DEFINE_FREEP(struct top_model, top_model_free)

/* Add a response. In the first one and after a clear, rates are averages since the start. */
int top_model_update(struct top_model *m, const json_t *rows, struct diag *diag);

/* Show the callers of the function `key`, once a response contains them. NULL: return to the
 * functions, with that one selected. 0 or -ENOMEM. */
int top_model_set_callers(struct top_model *m, const char *key);
const char *top_model_callers(const struct top_model *m); /* NULL: not shown */

void top_model_set_view(struct top_model *m, enum top_view view);
void top_model_set_clock(struct top_model *m, enum snapshot_clock clock);
void top_model_set_sort(struct top_model *m, enum top_sort sort, bool reverse);
/* NULL or "": all. An invalid expression (exit code 2) leaves the filter unchanged. */
int top_model_set_filter(struct top_model *m, const char *pattern, struct diag *diag);

enum top_view top_model_view(const struct top_model *m);
enum snapshot_clock top_model_clock(const struct top_model *m);
enum top_sort top_model_sort(const struct top_model *m);
bool top_model_reversed(const struct top_model *m);
const char *top_model_filter(const struct top_model *m); /* never NULL */

/* The rows to show, valid until the model changes */
const struct top_row *top_model_rows(const struct top_model *m, size_t *ret_n);

/* Index of the selected row, which moves with its function; 0 if there are no rows. */
size_t top_model_selected(const struct top_model *m);
void top_model_move(struct top_model *m, long rows);

/* Print the heading or a row, at most `columns` wide, without characters that can harm a
 * terminal. */
void top_print_heading(const struct top_model *m, size_t columns, FILE *out);
void top_print_row(const struct top_row *r, size_t columns, FILE *out);

/* Print a summary of /v1/status: targets, events per second, losses, overhead. */
void top_print_status(const json_t *status, size_t columns, FILE *out);

#endif
