// SPDX-License-Identifier: BSD-2-Clause
/* Order of a live view's rows: see top_order.h. */
#include "top_order.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const live[] = {"self", "cum", "rate", "wait"};
#define NLIVE (sizeof(live) / sizeof(live[0]))
_Static_assert(NLIVE == TOP_BY_KEYS, "a word for each live order");

/* For keys that step through them */
static const char *const common[] = {"self",  "cum",	 "rate",    "wait",
				     "calls", "tottime", "cumtime", "name"};
#define NCOMMON (sizeof(common) / sizeof(common[0]))

int top_order_parse(const char *text, struct top_order *ret, struct diag *diag)
{
	struct top_order o = {.live = TOP_BY_KEYS};
	struct diag why = {0};
	int r = 0;

	for (size_t i = 0; i < NLIVE; i++)
		if (strcmp(text, live[i]) == 0)
			o.live = (enum top_live)i;
	if (strlen(text) >= sizeof(o.text))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "too many sort keys");
	if (o.live == TOP_BY_KEYS)
		r = sort_parse(text, &o.sort, &why);
	if (r < 0)
		return diag_set(diag, r, why.exit,
				"self, cum, rate, wait, or the sort keys of `pyprofctl snapshot`",
				"%s", why.msg);
	snprintf(o.text, sizeof(o.text), "%s", text);
	*ret = o;
	return 0;
}

const char *top_order_text(const struct top_order *o)
{
	return o->text[0] ? o->text : live[TOP_BY_SELF];
}

void top_order_step(struct top_order *o, int step)
{
	int at = 0;

	for (size_t i = 0; i < NCOMMON; i++)
		if (strcmp(common[i], top_order_text(o)) == 0)
			at = (int)i;
	at = (at + step) % (int)NCOMMON;
	top_order_parse(common[at < 0 ? at + (int)NCOMMON : at], o, NULL);
}

static int by_number(double l, double r)
{
	return (l < r) - (l > r);
}

/* The row as a report's; what is not a function has its name in place of file and name. */
static struct table_row report_row(const struct top_row *r)
{
	const struct top_entry *e = r->entry;
	bool function = e->file && e->func;

	return (struct table_row){
		.file = function ? e->file : e->name,
		.name = function ? e->func : e->name,
		.std = function ? e->key : e->name,
		.line = e->line,
		.nc = r->calls,
		.cc = e->primitive,
		.tt = r->tottime,
		.ct = r->cumtime,
	};
}

static int compare(const struct top_order *o, const struct top_row *l, const struct top_row *r)
{
	struct table_row left, right;

	switch (o->live) {
	case TOP_BY_SELF:
		return by_number(l->self, r->self);
	case TOP_BY_CUM:
		return by_number(l->cum, r->cum);
	case TOP_BY_RATE:
		return by_number(l->rate, r->rate);
	case TOP_BY_WAIT:
		return by_number(l->waiting, r->waiting);
	default:
		left = report_row(l);
		right = report_row(r);
		return sort_compare(&o->sort, &left, &right);
	}
}

int top_order_compare(const struct top_order *o, const struct top_row *l, const struct top_row *r)
{
	int order = compare(o, l, r);

	if (!order)
		order = by_number((double)l->tottime, (double)r->tottime);
	if (!order)
		order = strcmp(l->entry->name, r->entry->name);
	return order ? order : strcmp(l->key, r->key);
}
