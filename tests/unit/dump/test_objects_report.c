// SPDX-License-Identifier: BSD-2-Clause
/* Censuses of objects: written, loaded, compared. */
#include "dump/objects_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/test.h"

#define NAME(text) ((char[]){text})

static struct census_type before_types[] = {
	{NAME("list"), 10, 1000}, {NAME("gone"), 1, 64}, {NAME("same"), 2, 80}};
static struct census_type now_types[] = {
	{NAME("list"), 7, 2000}, {NAME("same"), 2, 80}, {NAME("a.\xc3\xa9"), 5, 400}};
static const struct objects_report before = {
	.pid = 42,
	.time_ns = 1000000000,
	.version = "3.11.2",
	.command = "python x",
	.census = {.types = before_types, .n = 3, .objects = 13, .bytes = 1144, .lists = 4},
};
static const struct objects_report now = {
	.pid = 42,
	.time_ns = 3500000000,
	.version = "3.11.2",
	.command = "python x",
	.census = {.types = now_types, .n = 3, .objects = 14, .bytes = 2480, .lists = 4, .torn = 1},
};

typedef int (*write_fn)(const struct objects_report *r, const struct objects_report *b,
			const struct objects_report_opts *opts, FILE *out);

static char *text_of(write_fn write, const struct objects_report *b, enum objects_report_sort sort,
		     uint64_t limit)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert(out);
	assert_ok(write(&now, b, &(struct objects_report_opts){sort, limit}, out));
	fclose(out);
	return text;
}

static void expect_order(const char *text, const char *first, const char *second)
{
	const char *a = strstr(text, first), *b = strstr(text, second);

	cr_assert(a && b && a < b, "%s before %s in: %s", first, second, text);
}

Test(objects_report, text)
{
	char *text = text_of(objects_report_write_text, NULL, OBJECTS_BY_COUNT, 0);

	expect_order(text, "  list\n", "  a.\xc3\xa9\n");
	expect_order(text, "WARNING: 1 of 4 lists", "bytes/n");
	free(text);
	text = text_of(objects_report_write_text, NULL, OBJECTS_BY_COUNT, 2);
	cr_assert(!strstr(text, "same") && strstr(text, "1 more types"));
	free(text);
	check_no_leaks();
}

Test(objects_report, difference)
{
	char *text = text_of(objects_report_write_text, &before, OBJECTS_BY_COUNT, 0);

	expect_order(text, "  a.\xc3\xa9\n", "  gone\n");
	expect_order(text, "  gone\n", "  list\n");
	expect_order(text, "2.5 seconds before: 13 objects", "+1 objects");
	cr_assert(strstr(text, "-1            -64            0              0  gone"), "%s", text);
	cr_assert(!strstr(text, "same"));
	free(text);
	text = text_of(objects_report_write_text, &before, OBJECTS_BY_SIZE, 0);
	expect_order(text, "  list\n", "  a.\xc3\xa9\n");
	free(text);
	check_no_leaks();
}

static void save(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

Test(objects_report, saved)
{
	char path[] = "/tmp/pyprof-objects-XXXXXX";
	char *text = text_of(objects_report_write_json, NULL, OBJECTS_BY_COUNT, 0);
	struct objects_report got;
	struct diag diag = {0};

	close(mkstemp(path));
	save(path, text);
	assert_diag_ok(objects_report_load(path, &got, &diag), &diag);
	cr_assert(got.census.n == 3 && got.time_ns == now.time_ns && got.census.objects == 14);
	cr_assert_str_eq(got.census.types[1].name, "a.\xc3\xa9");
	cr_assert(got.census.types[1].count == 5 && got.census.types[1].bytes == 400);
	objects_report_deinit(&got);
	free(text);

	/* A difference cannot be loaded as a census, nor can any other file. */
	text = text_of(objects_report_write_json, &before, OBJECTS_BY_COUNT, 0);
	save(path, text);
	assert_err(objects_report_load(path, &got, &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	free(text);
	save(path,
	     "{\"format\": \"pyprofd-objects\", \"version\": 1, \"time_ns\": 1, \"objects\": 1, "
	     "\"bytes\": 1, \"types\": [{\"type\": \"x\", \"count\": -1, \"bytes\": 1}]}");
	assert_err(objects_report_load(path, &got, &diag), -EINVAL);
	unlink(path);
	assert_err(objects_report_load(path, &got, &diag), -ENOENT);
	check_no_leaks();
}
