/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of a live view, at most `columns` wide, without characters that can harm a terminal. On
 * narrow terminals less important figures are left out, so that names remain legible. Pure.
 */
#ifndef PYPROFCTL_TOP_LINES_H
#define PYPROFCTL_TOP_LINES_H

#include <stdio.h>

#include "top_model.h"

void top_print_heading(const struct top_model *m, size_t columns, FILE *out);
void top_print_row(const struct top_row *r, size_t columns, FILE *out);

/* Where the bar of a row is; width 0: there is no room for one. */
struct top_bar_place {
	size_t column, width;
};
struct top_bar_place top_bar_place(size_t columns);

#define TOP_BAR_MAX 40

/* A letter for each reason for waiting: 'G' for the GIL */
extern const char top_wait_letters[TOP_WAITS + 1];

/*
 * The row's waiting by reason as letters, "GGGIIIII". `full` (percent) fills the width. Returns the
 * number of letters in bar, which ends with NUL.
 */
size_t top_bar(const struct top_row *r, double full, size_t width, char bar[TOP_BAR_MAX + 1]);
/* The largest waiting time of the rows, at least 100: what fills a bar */
double top_bar_full(const struct top_model *m);

/* The same lines with waiting in place of times: its share, a bar, the most frequent reason */
void top_print_waits_heading(const struct top_model *m, size_t columns, FILE *out);
void top_print_waits_row(const struct top_row *r, double full, size_t columns, FILE *out);
/* What the letters mean */
void top_print_legend(size_t columns, FILE *out);

/* Print a summary of /v1/status: targets, events per second, losses, overhead. */
void top_print_status(const json_t *status, size_t columns, FILE *out);

/* Print those of the parts (ends with NULL; "": left out) that fit, from the first one on. */
void top_print_parts(const char *const *parts, const char *separator, size_t columns, FILE *out);

#endif
