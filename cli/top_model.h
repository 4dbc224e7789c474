/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data of a live view: the differences between two responses (format "rows") as rates and totals,
 * sorted and filtered, with one row selected. Pure: uses neither screen nor daemon.
 */
#ifndef PYPROFCTL_TOP_MODEL_H
#define PYPROFCTL_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "history/when.h"
#include "snapshot/snapshot.h"
#include "top_order.h"
#include "top_table.h"

struct top_model;

struct top_model *top_model_new(void);
void top_model_free(struct top_model *m);
DEFINE_FREEP(struct top_model, top_model_free)

/* Add a response. In the first one and after a clear, rates are averages since the start. */
int top_model_update(struct top_model *m, const json_t *rows, struct diag *diag);

/*
 * Do the figures stand for one interval, as those of continuous mode (top_history.h), so that they are not
 * compared with the response before? Are numbers of calls unknown? ret: NULL, or the interval.
 */
bool top_model_interval(const struct top_model *m, struct when_span *ret);
bool top_model_uncounted(const struct top_model *m);

/* Forget all responses: the next ones are about other processes or threads. */
void top_model_forget(struct top_model *m);

/* Show the callers of the function `key`, once a response contains them. NULL: return to the
 * functions, with that one selected. 0 or -ENOMEM. */
int top_model_set_callers(struct top_model *m, const char *key);
const char *top_model_callers(const struct top_model *m); /* NULL: not shown */

void top_model_set_view(struct top_model *m, enum top_view view);
void top_model_set_clock(struct top_model *m, enum snapshot_clock clock);
void top_model_set_order(struct top_model *m, const struct top_order *order, bool reverse);
/* Show percentages of the time of this many CPUs (default: 1). Wall time is not divided. */
void top_model_set_cpus(struct top_model *m, unsigned int cpus);
/* Show whole paths and command lines. */
void top_model_set_full_names(struct top_model *m, bool full);
/* NULL or "": all. An invalid expression (exit code 2) leaves the filter unchanged. */
int top_model_set_filter(struct top_model *m, const char *pattern, struct diag *diag);

enum top_view top_model_view(const struct top_model *m);
enum snapshot_clock top_model_clock(const struct top_model *m);
const struct top_order *top_model_order(const struct top_model *m);
unsigned int top_model_cpus(const struct top_model *m);
bool top_model_full_names(const struct top_model *m);
bool top_model_reversed(const struct top_model *m);
const char *top_model_filter(const struct top_model *m); /* never NULL */

/* The rows to show, valid until the model changes */
const struct top_row *top_model_rows(const struct top_model *m, size_t *ret_n);

/* Index of the selected row, which moves with its function; 0 if there are no rows. */
size_t top_model_selected(const struct top_model *m);
void top_model_move(struct top_model *m, long rows);

#endif
