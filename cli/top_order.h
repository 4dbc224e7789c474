/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of a live view's rows: by figures of the last interval, or by reports' sort keys. */
#ifndef PYPROFCTL_TOP_ORDER_H
#define PYPROFCTL_TOP_ORDER_H

#include "base/diag.h"
#include "format/sort.h"
#include "top_table.h"

struct top_row {
	const struct top_entry *entry;	  /* what it shows */
	const char *key, *name;		  /* the entry's key; the text to show */
	uint64_t calls, tottime, cumtime; /* since the start of tracing or the latest clear; ns */
	bool uncounted;			  /* numbers of calls are unknown */
	double rate;			  /* calls per second in the last interval */
	double self, cum;		  /* percent of the last interval; threads: CPU and wall */
	double wait[TOP_WAITS], waiting;  /* percent of the last interval, by reason; their sum */
};

/* All zero: by self time in the last interval */
struct top_order {
	enum top_live { TOP_BY_SELF, TOP_BY_CUM, TOP_BY_RATE, TOP_BY_WAIT, TOP_BY_KEYS } live;
	struct sort sort; /* with TOP_BY_KEYS */
	char text[64];	  /* as it was given; "": the default */
};

/*
 * Parse "self", "cum", "rate" or "wait" (the last interval), or the sort keys of `snapshot --sort`.
 * -EINVAL, exit code 2: neither.
 */
int top_order_parse(const char *text, struct top_order *ret, struct diag *diag);

const char *top_order_text(const struct top_order *o);

/* The common order that is `step` places after this one */
void top_order_step(struct top_order *o, int step);

/* Negative: l comes first. Equal rows (an idle program) are ordered by total time, then by name. */
int top_order_compare(const struct top_order *o, const struct top_row *l, const struct top_row *r);

#endif
