// SPDX-License-Identifier: BSD-2-Clause
/* Sums of hours: see fleet_hours.h. */
#include "fleet_hours.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "clickhouse/rollup.h"
#include "fleet_sql.h"

#define ATTEMPTS   3
#define S_PER_HOUR UINT64_C(3600)

void fleet_hours_deinit(struct fleet_hours *h)
{
	free(h->ranges);
	*h = (struct fleet_hours){.n = 0};
}

static int find_list(struct fleet_client *c, uint32_t first, uint32_t end, struct hours_list *ret,
		     struct diag *diag)
{
	_cleanup_(fleet_answer_deinit) struct fleet_answer answer = {0};
	_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};
	int r = fleet_sql_open(&sql, diag);

	*ret = (struct hours_list){.n = 0};
	if (r < 0)
		return r;
	rollup_write_list(fleet_database(c), first, end, sql.out);
	r = fleet_sql_run(&sql, c, &answer, diag);
	return r < 0 ? r : rollup_read_list(answer.data, answer.n, ret, diag);
}

int fleet_hours_find(struct fleet_client *c, const struct question *q, struct fleet_hours *ret,
		     struct diag *diag)
{
	_cleanup_(hours_list_deinit) struct hours_list list = {.n = 0};
	uint32_t first = (uint32_t)((q->from_s + S_PER_HOUR - 1) / S_PER_HOUR);
	uint32_t end = (uint32_t)(q->until_s / S_PER_HOUR);
	struct diag unused = {0};

	*ret = (struct fleet_hours){.n = 0};
	if (first >= end || !question_fits_hours(q))
		return 0;
	/* Without them the answer is the same. Other errors occur again. */
	if (find_list(c, first, end, &list, &unused) < 0)
		return 0;
	if (rollup_ranges(&list, q, &ret->ranges, &ret->n, &ret->used) < 0)
		return diag_errno(diag, ENOMEM, "cannot ask the database");
	return 0;
}

/* ---- filling ---- */

typedef void (*write_fn)(const struct rollup *r, FILE *out);

static int run_statement(struct fleet_client *c, const struct rollup *rollup, write_fn write,
			 struct diag *diag)
{
	_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};
	int r = fleet_sql_open(&sql, diag);

	if (r < 0)
		return r;
	write(rollup, sql.out);
	return fleet_sql_run(&sql, c, NULL, diag);
}

static int drop_table(struct fleet_client *c, const char *table, size_t n, struct diag *diag)
{
	_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};
	int r = fleet_sql_open(&sql, diag);

	if (r < 0)
		return r;
	rollup_write_drop(fleet_database(c), table, n, sql.out);
	return fleet_sql_run(&sql, c, NULL, diag);
}

static int fill_table(struct fleet_client *c, const struct rollup *rollup, struct diag *diag)
{
	bool more = true;
	int r = 0;

	for (unsigned int i = 0; more && r == 0; i++) {
		_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};

		r = fleet_sql_open(&sql, diag);
		if (r < 0)
			return r;
		more = rollup_write_fill(i, rollup, sql.out);
		if (more)
			r = fleet_sql_run(&sql, c, NULL, diag);
	}
	return r;
}

static bool same_state(const struct hours_state *a, const struct hours_state *b)
{
	return a->blocks == b->blocks && a->rows == b->rows;
}

static int find_hour(struct fleet_client *c, uint32_t hour, struct hours_entry *ret,
		     struct diag *diag)
{
	_cleanup_(hours_list_deinit) struct hours_list list = {.n = 0};
	int r = find_list(c, hour, hour + 1, &list, diag);

	*ret = r == 0 && list.n == 1 ? list.list[0] : (struct hours_entry){.hour = hour};
	return r;
}

/*
 * If profiles arrived meanwhile, the statements may not have added up the same ones: *ret is false. So it is
 * if another rollup replaced the hour at the same time: the database may have kept the sums of both.
 */
static int replace_if_same(struct fleet_client *c, const struct rollup *rollup, bool *ret,
			   struct diag *diag)
{
	struct hours_entry e;
	int r = find_hour(c, rollup->hour, &e, diag);

	*ret = false;
	if (r < 0 || !same_state(&e.there, &rollup->of))
		return r;
	r = run_statement(c, rollup, rollup_write_replace, diag);
	if (r == 0)
		r = find_hour(c, rollup->hour, &e, diag);
	*ret = r == 0 && e.filled;
	return r;
}

static int fill_once(struct fleet_client *c, const struct hours_entry *e, uint64_t now_s, bool *ret,
		     struct diag *diag)
{
	struct rollup rollup = {.database = fleet_database(c), .hour = e->hour, .of = e->there};
	char table[ROLLUP_NAME_MAX];
	struct diag unused = {0};
	uint32_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random) ||
	    getrandom(&rollup.filled, sizeof(rollup.filled), 0) != sizeof(rollup.filled))
		return diag_errno(diag, errno, "cannot fill the hours");
	rollup.filled |= 1;
	rollup_name(now_s, random, table);
	rollup.table = table;
	r = fill_table(c, &rollup, diag);
	if (r == 0)
		r = replace_if_same(c, &rollup, ret, diag);
	/* Else the next rollup drops it. */
	(void)drop_table(c, table, strlen(table), &unused);
	return r;
}

/* *ret: it was filled; an hour in which profiles keep arriving is left to the next time. */
static int fill_hour(struct fleet_client *c, const struct hours_entry *entry, uint64_t now_s,
		     bool *ret, struct diag *diag)
{
	struct hours_entry e = *entry;
	int r = fill_once(c, &e, now_s, ret, diag);

	for (int i = 1; i < ATTEMPTS && r == 0 && !*ret; i++) {
		r = find_hour(c, e.hour, &e, diag);
		if (r < 0 || !e.there.rows || rollup_is_current(&e))
			return r;
		r = fill_once(c, &e, now_s, ret, diag);
	}
	return r;
}

/* Tables of rollups that did not finish */
static int drop_old(struct fleet_client *c, uint64_t now_s, struct diag *diag)
{
	_cleanup_(fleet_answer_deinit) struct fleet_answer answer = {0};
	_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};
	int r = fleet_sql_open(&sql, diag);

	if (r < 0)
		return r;
	rollup_write_names(fleet_database(c), sql.out);
	r = fleet_sql_run(&sql, c, &answer, diag);
	for (size_t at = 0; at < answer.n && r == 0;) {
		const char *name = answer.data + at, *end = memchr(name, '\n', answer.n - at);
		size_t n = end ? (size_t)(end - name) : answer.n - at;

		if (rollup_name_is_old(name, n, now_s))
			r = drop_table(c, name, n, diag);
		at += n + 1;
	}
	return r;
}

int fleet_rollup(struct fleet_client *c, const struct fleet_rollup_opts *o, uint64_t *ret,
		 struct diag *diag)
{
	_cleanup_(hours_list_deinit) struct hours_list list = {.n = 0};
	uint32_t first = (uint32_t)((o->from_s + S_PER_HOUR - 1) / S_PER_HOUR);
	uint32_t end = (uint32_t)(o->until_s / S_PER_HOUR);
	int r = drop_old(c, o->now_s, diag);

	*ret = 0;
	if (r == 0)
		r = find_list(c, first, end, &list, diag);
	if (r == 0 && !list.local)
		return diag_set(diag, -EINVAL, PYP_EXIT_FAILURE, "fill the hours on each server",
				"the table profiles is not stored by this server");
	for (size_t i = 0; i < list.n && r == 0; i++) {
		bool filled = false;

		if (rollup_is_due(&list.list[i], o->now_s, o->wait_s))
			r = fill_hour(c, &list.list[i], o->now_s, &filled, diag);
		*ret += filled;
	}
	return r;
}
