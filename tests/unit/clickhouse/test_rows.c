// SPDX-License-Identifier: BSD-2-Clause
/* RowBinary: what is written can be read, and nothing is read beyond its end; ids; tables. */
#include "clickhouse/rows.h"

#include <errno.h>

#include "clickhouse/contexts.h"
#include "clickhouse/ids.h"
#include "clickhouse/interval_rows.h"
#include "clickhouse/records.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

Test(rows, values_survive_a_round_trip)
{
	static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};
	struct rows r = {0};
	struct cells c;
	const char *s;
	size_t n;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		rows_put_varint(&r, numbers[i]);
		rows_put_u64(&r, numbers[i]);
		rows_put_double(&r, (double)numbers[i]);
	}
	rows_put_str(&r, "name\n");
	rows_put_str(&r, NULL);
	assert_ok(r.err);
	c = (struct cells){.p = r.data, .end = r.data + r.n};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		cr_assert_eq(cells_varint(&c), numbers[i]);
		cr_assert_eq(cells_u64(&c), numbers[i]);
		cr_assert(cells_double(&c) == (double)numbers[i]);
	}
	s = cells_str(&c, &n);
	cr_assert(n == 5 && memcmp(s, "name\n", 5) == 0);
	cells_str(&c, &n);
	cr_assert(n == 0 && !c.err && !cells_more(&c));
	cr_assert_eq(cells_u8(&c), 0);
	assert_err(c.err, -EBADMSG);
	rows_deinit(&r);
	check_no_leaks();
}

Test(rows, impossible_lengths_are_errors)
{
	static const uint8_t endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					  0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 'a'};
	struct cells c = {.p = endless, .end = endless + sizeof(endless)};
	size_t n;

	cells_varint(&c);
	assert_err(c.err, -EBADMSG);
	c = (struct cells){.p = huge, .end = huge + sizeof(huge)};
	cr_assert_null(cells_str(&c, &n));
	assert_err(c.err, -EBADMSG);
	cr_assert_eq(n, 0);
}

/* These values are stored: they must never change. */
Test(ids, are_the_same_on_all_machines)
{
	const struct snapshot_func f = {
		.filename = "a.py", .name = "f", .qualname = "A.f", .firstlineno = 7};
	struct snapshot_func other = f;
	struct stack_id child = stack_id_child(&stack_id_root, 1);

	cr_assert_eq(function_id(&f), UINT64_C(0xa645311513481e9c), "%llx",
		     (unsigned long long)function_id(&f));
	cr_assert_eq(stack_id_key(&child), UINT64_C(0x70a42897a76b5285), "%llx",
		     (unsigned long long)stack_id_key(&child));
	other.qualname = NULL;
	cr_assert_neq(function_id(&f), function_id(&other));
	other.qualname = "";
	cr_assert_neq(function_id(&f), function_id(&other));
	other = f;
	other.filename = "a.pyf";
	other.name = "";
	cr_assert_neq(function_id(&f), function_id(&other));
	other = f;
	other.variant = 1;
	cr_assert_neq(function_id(&f), function_id(&other));
}

Test(contexts, are_added_up_over_threads_without_empty_ones)
{
	struct snapshot *s = snapshot_build("target 42\nthread 42 42 main\nmain a.py:1 1 0\n"
					    "  f a.py:10 3 2000 2500\nthread 42 43 worker\n"
					    "main a.py:1 0 0\n  g a.py:20 0 0\n"
					    "  f a.py:10 4 1000\n");
	struct contexts c;

	assert_ok(contexts_collect(&c, s));
	/* the root, main, f, g: a leaf without figures has a row in reports */
	cr_assert_eq(c.n, 4);
	for (uint32_t i = 0; i < c.n; i++) {
		const struct snapshot_node *n = &s->nodes[c.list[i].node];

		if (n->func == SNAPSHOT_NONE || strcmp(s->funcs[n->func].name, "f") != 0)
			continue;
		cr_assert_eq(c.list[i].calls, 7);
		cr_assert_eq(c.list[i].self[SNAPSHOT_CPU], 3000);
		cr_assert_eq(c.list[i].self[SNAPSHOT_WALL], 3500);
		cr_assert_eq(context_depth(s, c.list[i].node), 2);
	}
	contexts_deinit(&c);
	snapshot_free(s);
	check_no_leaks();
}

static struct interval *interval_of(struct snapshot *s)
{
	struct interval *iv = interval_new((const uint8_t[INTERVAL_ID_BYTES]){1, 2, 3},
					   UINT64_C(1700000000000000000),
					   UINT64_C(1700000010000000000), s);

	cr_assert(iv);
	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, "web"));
	return iv;
}

/* A retry must insert equal rows. */
Test(interval_rows, are_the_same_each_time)
{
	struct interval *iv = interval_of(snapshot_hostile());
	struct rows a = {0}, b = {0};
	struct diag diag = {0};

	assert_diag_ok(interval_rows_put(&a, iv, &diag), &diag);
	assert_diag_ok(interval_rows_put(&b, iv, &diag), &diag);
	cr_assert(a.n == b.n && a.n > 0 && a.count == b.count);
	assert_bytes_eq(a.data, b.data, a.n);
	cr_assert_eq(a.data[0], TABLES_FUNCTIONS);
	rows_deinit(&a);
	rows_deinit(&b);
	interval_free(iv);
	check_no_leaks();
}

/* The last record is the profile; names have keys, the same in each interval of the month. */
Test(interval_rows, are_names_and_a_profile)
{
	struct interval *iv = interval_of(snapshot_random(5)),
			*later = interval_of(snapshot_random(5));
	struct rows a = {0}, b = {0};
	struct record ra = {.kind = TABLES_FUNCTIONS}, rb;
	const uint8_t *row;
	struct cells ca, cb;
	unsigned int same = 0;

	later->start_unix_ns += UINT64_C(86400000000000);
	assert_ok(interval_rows_put(&a, iv, NULL));
	assert_ok(interval_rows_put(&b, later, NULL));
	ca = (struct cells){.p = a.data, .end = a.data + a.n};
	cb = (struct cells){.p = b.data, .end = b.data + b.n};
	while (record_next(&ca, &ra, &row) && record_next(&cb, &rb, &row)) {
		cr_assert_eq(ra.key, rb.key);
		cr_assert_eq(ra.key == 0, ra.kind == TABLES_PROFILES);
		same += ra.key != 0;
	}
	cr_assert(!ca.err && ra.kind == TABLES_PROFILES && same > 3);
	rows_deinit(&b);
	later->start_unix_ns += UINT64_C(31) * 86400000000000;
	assert_ok(interval_rows_put(&b, later, NULL));
	ca = (struct cells){.p = a.data, .end = a.data + a.n};
	cb = (struct cells){.p = b.data, .end = b.data + b.n};
	cr_assert(record_next(&ca, &ra, &row) && record_next(&cb, &rb, &row));
	cr_assert_neq(ra.key, rb.key, "another month");
	rows_deinit(&a);
	rows_deinit(&b);
	interval_free(iv);
	interval_free(later);
	check_no_leaks();
}

Test(interval_rows, of_different_modes_are_refused)
{
	struct snapshot *s = snapshot_build("target 1\nthread 1 1 a\ntarget 2\nthread 2 2 b\n");
	struct interval *iv = interval_of(s);
	struct rows r = {0};
	struct diag diag = {0};

	s->targets[1].mode = MODE_SAMPLE;
	assert_err(interval_rows_put(&r, iv, &diag), -EINVAL);
	rows_deinit(&r);
	interval_free(iv);
	check_no_leaks();
}

Test(tables, names_that_need_quotes_are_refused)
{
	cr_assert(tables_database_valid("pyprof") && tables_database_valid("_A1"));
	cr_assert(!tables_database_valid("") && !tables_database_valid("1a"));
	cr_assert(!tables_database_valid("a.b") && !tables_database_valid("a b"));
	cr_assert(!tables_database_valid("a;DROP"));
}

static int parse_mark(const char *text, struct tables_mark *ret)
{
	return tables_mark_parse(text, strlen(text), ret);
}

Test(tables, marks_are_checked)
{
	struct tables_mark mark, found;
	char text[64];

	tables_mark_new(7, &mark);
	cr_assert_str_eq(mark.name, "tables_2_0000000000000007");
	snprintf(text, sizeof(text), "id\n%s\n", mark.name);
	assert_ok(parse_mark(text, &found));
	cr_assert_str_eq(found.name, mark.name);
	snprintf(text, sizeof(text), "%s\nid", mark.name);
	assert_ok(parse_mark(text, &found));
	cr_assert_str_eq(found.name, mark.name);
	assert_err(parse_mark("", &found), -ENOENT);
	assert_err(parse_mark("id\n", &found), -EPROTO);
	assert_err(parse_mark("id\ntables_3_00\n", &found), -EPROTO);
	assert_err(parse_mark("tables_2_`) DROP\n", &found), -EPROTO);
	assert_err(parse_mark("<html>", &found), -EPROTO);
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, TABLES_MARK_PREFIX, strlen(TABLES_MARK_PREFIX));
	text[sizeof(text) - 1] = '\0';
	assert_err(parse_mark(text, &found), -EPROTO);
}
