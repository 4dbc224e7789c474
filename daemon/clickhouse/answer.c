// SPDX-License-Identifier: BSD-2-Clause
/* Answers of one row, and lists: see answer.h. */
#include "clickhouse/answer.h"

#include <errno.h>
#include <string.h>

#include "clickhouse/facts.h"
#include "clickhouse/rows.h"
#include "interval/interval.h"

#define VALUES_MAX 100000u

static int damaged(struct diag *diag)
{
	return diag_set(diag, -EBADMSG, PYP_EXIT_FAILURE,
			"check that the address is ClickHouse's HTTP interface",
			"the database's answer is damaged");
}

/* Texts that are longer are cut. */
static void read_text(struct cells *c, char buf[ANSWER_TEXT_MAX])
{
	size_t n;
	const char *s = cells_str(c, &n);

	if (n >= ANSWER_TEXT_MAX)
		n = ANSWER_TEXT_MAX - 1;
	if (s)
		memcpy(buf, s, n);
	buf[n] = '\0';
}

int answer_summary(const void *data, size_t n, struct answer_summary *ret, struct diag *diag)
{
	struct cells c = {.p = data};

	memset(ret, 0, sizeof(*ret));
	if (!n) /* releases that return no row if nothing matches */
		return 0;
	c.end = c.p + n;
	ret->intervals = cells_u64(&c);
	ret->hosts = cells_u64(&c);
	ret->processes = cells_u64(&c);
	ret->start_ns = cells_u64(&c);
	ret->end_ns = cells_u64(&c);
	return c.err || cells_more(&c) ? damaged(diag) : 0;
}

/* NULL: a label that reports do not show. */
static struct answer_range *range_of(struct answer_summary *s, const char *label)
{
	const struct {
		const char *name;
		struct answer_range *range;
	} of[] = {{"service", &s->service},	     {"host", &s->host},
		  {"version", &s->version},	     {"mode", &s->mode},
		  {"options", &s->options},	     {INTERVAL_PYTHON, &s->python},
		  {FACT_LABEL_CLOCK, &s->clock},     {FACT_LABEL_KERNEL, &s->kernel},
		  {FACT_LABEL_PROGRAM, &s->program}, {FACT_LABEL_COMMAND, &s->command}};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (strcmp(of[i].name, label) == 0)
			return of[i].range;
	return NULL;
}

int answer_labels(const void *data, size_t n, struct answer_summary *ret, struct diag *diag)
{
	struct cells c = {.p = data, .end = (const uint8_t *)data + n};

	while (cells_more(&c)) {
		struct answer_range r, *to;
		char name[ANSWER_TEXT_MAX];

		read_text(&c, name);
		read_text(&c, r.min);
		read_text(&c, r.max);
		to = range_of(ret, name);
		if (to && !c.err)
			*to = r;
	}
	return c.err ? damaged(diag) : 0;
}

static int check_range(const struct answer_range *r, const char *label, struct diag *diag)
{
	char hint[ANSWER_TEXT_MAX + 64];

	if (strcmp(r->min, r->max) == 0)
		return 0;
	snprintf(hint, sizeof(hint), "select one: --where '%s=%.200s'", label, r->max);
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint,
			"profiles of different %s ('%.60s', '%.60s') cannot be added", label,
			r->min, r->max);
}

int answer_check(const struct answer_summary *s, struct diag *diag)
{
	int err;

	if (!s->intervals)
		return diag_set(diag, -ENOENT, PYP_EXIT_FAILURE,
				"`pyprofctl fleet services` lists what is stored; check --from, "
				"--to and --where",
				"no profiles match");
	err = check_range(&s->mode, "mode", diag);
	return err ? err : check_range(&s->options, "options", diag);
}

int answer_values(const void *data, size_t n, struct answer_value **ret, size_t *ret_n,
		  struct diag *diag)
{
	struct cells c = {.p = data, .end = (const uint8_t *)data + n};
	_cleanup_free_ struct answer_value *list = NULL;
	size_t have = 0, cap = 0;

	while (cells_more(&c) && have < VALUES_MAX) {
		struct answer_value *v;

		if (have == cap) {
			cap = cap ? cap * 2 : 64;
			v = reallocarray(list, cap, sizeof(*list));
			if (!v)
				return diag_errno(diag, ENOMEM, "cannot read the answer");
			list = v;
		}
		v = &list[have++];
		read_text(&c, v->value);
		v->hosts = cells_u64(&c);
		v->processes = cells_u64(&c);
		v->intervals = cells_u64(&c);
		v->cpu_ns = cells_u64(&c);
		v->wall_ns = cells_u64(&c);
	}
	if (c.err || cells_more(&c))
		return damaged(diag);
	*ret = TAKE_PTR(list);
	*ret_n = have;
	return 0;
}
