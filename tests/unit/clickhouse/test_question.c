// SPDX-License-Identifier: BSD-2-Clause
/* Questions: values are quoted, whatever they contain. */
#include "clickhouse/question.h"

#include <errno.h>

#include "harness/test.h"

static struct question question(void)
{
	return (struct question){.database = "d", .from_s = 1700000000, .until_s = 1700100000};
}

typedef void (*write_fn)(const struct question *q, FILE *out);

static char *text_of(const struct question *q, write_fn write)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	cr_assert(out);
	write(q, out);
	fclose(out);
	return text;
}

static void quote(const struct question *q, FILE *out)
{
	question_write_string(q->filters[0].value, out);
}

Test(question, strings_cannot_end_their_quotes)
{
	static const char *const cases[][2] = {
		{"a", "'a'"},
		{"'", "'\\''"},
		{"\\", "'\\\\'"},
		{"\\'; DROP TABLE x; --", "'\\\\\\'; DROP TABLE x; --'"},
		{"\xff'\n", "'\xff\\'\n'"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct question q = {.filters[0].value = cases[i][0]};
		char *text = text_of(&q, quote);

		cr_assert_str_eq(text, cases[i][1]);
		free(text);
	}
	check_no_leaks();
}

Test(question, filters_are_parsed)
{
	struct question q = question();
	struct diag diag = {0};
	char *text;

	assert_diag_ok(question_filter_add(&q, "service=a=b'", &diag), &diag);
	assert_diag_ok(question_filter_add(&q, "zone!=x", &diag), &diag);
	assert_diag_ok(question_filter_add(&q, "host~^a", &diag), &diag);
	text = text_of(&q, question_write_summary);
	cr_assert(strstr(text, " AND `service` = 'a=b\\''"), "%s", text);
	cr_assert(strstr(text, " AND `labels.value`[indexOf(`labels.name`, 'zone')] != 'x'"));
	cr_assert(strstr(text, " AND match(`host`, '^a')"));
	cr_assert(strstr(text, "time >= toDateTime(1700000000) AND time < toDateTime(1700100000)"));
	free(text);
	question_filter_remove(&q, "service");
	text = text_of(&q, question_write_functions);
	cr_assert(!strstr(text, "`service` ="), "%s", text);
	free(text);
	check_no_leaks();
}

Test(question, invalid_filters_are_refused)
{
	static const char *const bad[] = {"", "=", "a", "A=b", "a b=c", "a`=b", "a>b", "!=x"};
	struct question q = question();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct diag diag = {0};

		assert_err(question_filter_add(&q, bad[i], &diag), -EINVAL);
		cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	}
	for (int i = 0; i < QUESTION_FILTERS_MAX; i++)
		assert_ok(question_filter_add(&q, "a=b", NULL));
	assert_err(question_filter_add(&q, "a=b", NULL), -E2BIG);
}

Test(question, hours_replace_profiles)
{
	static const write_fn writes[] = {question_write_summary,  question_write_labels,
					  question_write_figures,  question_write_samples,
					  question_write_details,  question_write_stacks,
					  question_write_functions};
	const struct question_hours hours[] = {{472223, 472225}, {472230, 472231}};
	struct question q = question();

	assert_ok(question_filter_add(&q, "service=a'", NULL));
	cr_assert(question_fits_hours(&q));
	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		char *text;

		q.nhours = 0;
		text = text_of(&q, writes[i]);
		cr_assert(!strstr(text, "d.hours"), "%s", text);
		free(text);
		q.hours = hours;
		q.nhours = 2;
		text = text_of(&q, writes[i]);
		cr_assert(strstr(text, " AND (time < toDateTime(1700002800) OR time >= "
				       "toDateTime(1700010000)) AND (time < toDateTime(1700028000) "
				       "OR time >= toDateTime(1700031600)) AND `service` = 'a\\''"),
			  "%s", text);
		cr_assert(strstr(text,
				 " AND (hour >= 472223 AND hour < 472225 OR hour >= 472230 AND "
				 "hour < 472231) AND `service` = 'a\\''"),
			  "%s", text);
		free(text);
	}
	assert_ok(question_filter_add(&q, "version!=1", NULL));
	cr_assert(question_fits_hours(&q));
	assert_ok(question_filter_add(&q, "host=a", NULL));
	cr_assert(!question_fits_hours(&q));
	cr_assert(question_label_in_hours("mode") && !question_label_in_hours("pid"));
	check_no_leaks();
}
