// SPDX-License-Identifier: BSD-2-Clause
/* Intervals: labels, ids, and files that survive a round trip or are refused. */
#include "interval/interval.h"

#include <errno.h>
#include <string.h>

#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "snapshot/load.h"

static const uint8_t id[INTERVAL_ID_BYTES] = {0x00, 0x01, 0xfe, [15] = 0xa5};
#define ID_TEXT "0001fe000000000000000000000000a5"

static struct interval *build(void)
{
	struct interval *iv = interval_new(
		id, 1000, 2000,
		snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 2 100000\n"));

	cr_assert(iv);
	return iv;
}

static char *save(const struct interval *iv, size_t *ret_size)
{
	char *text = NULL;
	struct diag diag = {0};
	FILE *out = open_memstream(&text, ret_size);

	cr_assert(out);
	assert_diag_ok(interval_write(iv, out, &diag), &diag);
	fclose(out);
	return text;
}

static int parse(const char *text, struct interval **ret)
{
	struct diag diag = {0};

	*ret = NULL;
	return interval_parse(text, strlen(text), "test", ret, &diag);
}

Test(interval, labels_are_sorted_replaced_and_removed)
{
	struct interval *iv = build();
	size_t size;
	char *text;

	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, "web"));
	assert_ok(interval_set_label(iv, INTERVAL_HOST, "a"));
	assert_ok(interval_set_label(iv, "zone", "z"));
	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, "api"));
	cr_assert_eq(iv->nlabels, 3);
	cr_assert_str_eq(iv->labels[0].name, "host");
	cr_assert_str_eq(iv->labels[1].name, "service");
	cr_assert_str_eq(interval_label(iv, INTERVAL_SERVICE), "api");
	assert_ok(interval_set_label(iv, INTERVAL_HOST, NULL));
	cr_assert_eq(iv->nlabels, 2);
	cr_assert_str_eq(iv->labels[0].value, "api");
	cr_assert_str_eq(interval_label(iv, "zone"), "z");
	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, ""));
	assert_ok(interval_set_label(iv, INTERVAL_PYTHON, ""));
	cr_assert_eq(iv->nlabels, 1);
	cr_assert_null(interval_label(iv, INTERVAL_HOST));
	cr_assert_null(interval_label(iv, "zoned"));
	cr_assert_str_eq(interval_label(iv, "zone"), "z");
	text = save(iv, &size);
	cr_assert(strstr(text, "\"labels\":{\"zone\":\"z\"}"), "%s", text);
	free(text);
	interval_free(iv);
	check_no_leaks();
}

Test(interval, labels_have_limits)
{
	struct interval *iv = build();
	char value[2 * INTERVAL_LABEL_VALUE_MAX], name[8];

	memset(value, 'x', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	assert_ok(interval_set_label(iv, "long", value));
	cr_assert_eq(strlen(interval_label(iv, "long")), INTERVAL_LABEL_VALUE_MAX);
	assert_ok(interval_set_label(iv, "bytes",
				     "a\xff"
				     "b"));
	cr_assert_str_eq(interval_label(iv, "bytes"), "a?b");
	for (int i = 2; i < INTERVAL_LABELS_MAX; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_ok(interval_set_label(iv, name, "v"));
	}
	cr_assert_eq(interval_set_label(iv, "more", "v"), -E2BIG);
	assert_ok(interval_set_label(iv, "n2", "w"));
	cr_assert_eq(interval_set_label(iv, "", "v"), -EINVAL);
	cr_assert_eq(interval_set_label(iv, "0a", "v"), -EINVAL);
	cr_assert_eq(interval_set_label(iv, "9a", "v"), -EINVAL);
	cr_assert_eq(interval_set_label(iv, "a-b", "v"), -EINVAL);
	value[INTERVAL_LABEL_NAME_MAX + 1] = '\0';
	cr_assert_eq(interval_set_label(iv, value, "v"), -EINVAL);
	value[INTERVAL_LABEL_NAME_MAX] = '\0';
	assert_ok(interval_set_label(iv, "n2", NULL));
	assert_ok(interval_set_label(iv, value, "v"));
	cr_assert_str_eq(iv->labels[INTERVAL_LABELS_MAX - 1].name, value);
	interval_free(iv);
	check_no_leaks();
}

Test(interval, copies_are_complete)
{
	struct interval *iv = build(), *copy;
	size_t size, copy_size;
	char *text, *again;

	assert_ok(interval_set_label(iv, INTERVAL_HOST, "h"));
	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, "web"));
	iv->merged = 3;
	text = save(iv, &size);
	copy = interval_copy(iv);
	cr_assert(copy);
	interval_free(iv);
	again = save(copy, &copy_size);
	cr_assert_eq(size, copy_size, "%s\n%s", text, again);
	assert_bytes_eq(text, again, size);
	interval_free(copy);
	free(text);
	free(again);
	check_no_leaks();
}

Test(interval, ids)
{
	char text[INTERVAL_ID_TEXT];
	uint8_t again[INTERVAL_ID_BYTES];

	cr_assert_str_eq(interval_id_text(id, text), ID_TEXT);
	assert_ok(interval_id_parse(text, again));
	assert_bytes_eq(id, again, sizeof(id));
	cr_assert_eq(interval_id_parse("", again), -EINVAL);
	cr_assert_eq(interval_id_parse(ID_TEXT "0", again), -EINVAL);
	for (size_t at = 2; at < 4; at++)
		for (const char *c = "/:`gA"; *c; c++) {
			text[at] = *c;
			cr_assert_eq(interval_id_parse(text, again), -EINVAL, "%s", text);
			text[at] = 'f';
		}
	assert_ok(interval_id_parse("0123456789abcdeffedcba9876543210", again));
	assert_bytes_eq("\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10", again,
			sizeof(again));
	check_no_leaks();
}

/* Saving, reading and saving again gives the same bytes; it is also a saved snapshot. */
Test(interval, file_round_trip)
{
	struct interval *iv = build(), *loaded;
	struct snapshot *s;
	struct diag diag = {0};
	size_t size, again_size;
	char *text, *again;

	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, "a \"web\"\n\xc3\xa9"));
	assert_ok(interval_set_label(iv, INTERVAL_HOST, "h"));
	iv->merged = UINT32_MAX;
	text = save(iv, &size);
	assert_ok(parse(text, &loaded));
	cr_assert_eq(loaded->merged, UINT32_MAX);
	assert_bytes_eq(loaded->id, id, sizeof(id));
	cr_assert_eq(loaded->start_unix_ns, 1000);
	cr_assert_eq(loaded->end_unix_ns, 2000);
	cr_assert_str_eq(interval_label(loaded, INTERVAL_SERVICE), "a \"web\"\n\xc3\xa9");
	again = save(loaded, &again_size);
	cr_assert_eq(size, again_size, "%s\n%s", text, again);
	assert_bytes_eq(text, again, size);
	assert_diag_ok(snapshot_parse(text, size, "test", &s, &diag), &diag);
	cr_assert_eq(s->nnodes, iv->snapshot->nnodes);
	snapshot_free(s);
	interval_free(iv);
	interval_free(loaded);
	free(text);
	free(again);
	check_no_leaks();
}

/* Labels as one text, from a file and back. */
Test(interval, labels_as_text)
{
	static const char *const bad[] = {"", "[", "{\"a\":1}", "{\"A\":\"v\"}"};
	struct interval *iv = build(), *other = build();
	size_t size;
	char *text, *labels;

	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, "web"));
	assert_ok(interval_set_label(iv, INTERVAL_HOST, "h"));
	text = save(iv, &size);
	labels = interval_labels_text(text, size);
	cr_assert_str_eq(labels, "{\"host\":\"h\",\"service\":\"web\"}");
	assert_ok(interval_set_labels_text(other, labels));
	cr_assert_eq(other->nlabels, 2);
	cr_assert_str_eq(interval_label(other, INTERVAL_SERVICE), "web");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(interval_set_labels_text(other, bad[i]), -EBADMSG, "%s", bad[i]);
	cr_assert_eq(other->nlabels, 2);
	cr_assert_null(interval_labels_text("{\n}\n", 4));
	cr_assert_null(interval_labels_text(text, size - strlen("}\n}\n")), "it is cut");
	interval_free(iv);
	interval_free(other);
	free(text);
	free(labels);
	check_no_leaks();
}

Test(interval, a_full_disk_is_an_error)
{
	struct interval *iv = build();
	struct diag diag = {0};
	FILE *out = fopen("/dev/full", "w");

	cr_assert(out);
	setvbuf(out, NULL, _IONBF, 0);
	cr_assert_eq(interval_write(iv, out, &diag), -EIO);
	cr_assert(strstr(diag.msg, "cannot write an interval"), "%s", diag.msg);
	fclose(out);
	interval_free(iv);
	check_no_leaks();
}

/* Replaces text in a saved interval, and returns the error of reading the result. */
static int error_of(const char *from, const char *to)
{
	struct interval *iv = build(), *loaded;
	size_t size;
	_cleanup_free_ char *text = NULL, *bad = NULL;
	char *at;
	int r;

	assert_ok(interval_set_label(iv, INTERVAL_HOST, "h"));
	text = save(iv, &size);
	at = strstr(text, from);
	cr_assert(at, "%s is not in %s", from, text);
	cr_assert(asprintf(&bad, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	r = parse(bad, &loaded);
	interval_free(loaded);
	interval_free(iv);
	return r;
}

Test(interval, damaged_files_are_refused)
{
	static const struct {
		const char *from, *to;
		int err;
	} cases[] = {
		{"\"interval\"", "\"other\"", -EINVAL},
		{ID_TEXT, "00", -EBADMSG},
		{"\"start_unix_ns\":1000", "\"start_unix_ns\":2001", -EBADMSG},
		{"\"start_unix_ns\":1000", "\"start_unix_ns\":2000", 0},
		{"\"start_unix_ns\":1000", "\"start_unix_ns\":0", 0},
		{"\"start_unix_ns\":1000", "\"start_unix_ns\":-1", -EBADMSG},
		{"\"id\":", "\"i\":", -EBADMSG},
		{"{\"id\"", "{id", -EBADMSG},
		{"\"labels\"", "\"merged\":0,\"labels\"", 0},
		{"\"labels\"", "\"merged\":-1,\"labels\"", -EBADMSG},
		{"\"labels\"", "\"merged\":4294967295,\"labels\"", 0},
		{"\"labels\"", "\"merged\":4294967296,\"labels\"", -EBADMSG},
		{"\"host\":\"h\"", "", 0},
		{"\"host\":\"h\"", "\"host\":1", -EBADMSG},
		{"\"host\":\"h\"", "\"Host\":\"h\"", -EBADMSG},
		{"\"labels\":{", "\"labels\":[", -EBADMSG},
		{"\"nodes\"", "\"no\"", -EBADMSG},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = error_of(cases[i].from, cases[i].to);

		cr_assert_eq(r, cases[i].err, "%s: %d", cases[i].to, r);
	}
	check_no_leaks();
}
