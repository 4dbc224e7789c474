// SPDX-License-Identifier: BSD-2-Clause
/*
 * timeline: from a profile's events to both kinds of files, read back. Whatever is truncated,
 * dropped or limited, the file is complete, balanced and in order, and reports what is missing.
 */
#include "timeline/timeline.h"

#include <inttypes.h>
#include <jansson.h>

#include "harness/event_script.h"
#include "harness/reports.h"
#include "harness/test.h"
#include "timeline/wire.h"
#include "timeline/writer.h"

struct rig {
	struct event_script *es;
	struct timeline *tl;
	uint32_t source;
};

static struct rig rig_new(uint64_t buffer, uint64_t until)
{
	struct rig r = {.es = event_script_new(NULL)};
	const struct timeline_opts o = {
		.buffer = buffer, .from_ns = 1000, .until_ns = until, .from_unix_ns = 5000};

	r.tl = timeline_new(&o);
	cr_assert(r.tl);
	assert_ok(timeline_add(r.tl, 42, event_script_profile(r.es), &r.source));
	return r;
}

static void rig_free(struct rig *r)
{
	timeline_free(r->tl);
	event_script_free(r->es);
}

/* Take all waiting data as one piece. */
static char *take_all(struct timeline *tl, size_t *ret_n)
{
	char *all = NULL, *data;
	size_t n = 0, more;

	for (timeline_take(tl, &data, &more); data; timeline_take(tl, &data, &more)) {
		all = realloc(all, n + more + 1);
		memcpy(all + n, data, more);
		n += more;
		free(data);
	}
	*ret_n = n;
	return all;
}

/* Returns the file for these bytes, which are fed in pieces of at most `piece`. */
static char *render(const char *format, const char *data, size_t n, size_t piece, uint64_t max,
		    struct timeline_writer_counts *counts)
{
	const struct timeline_writer_opts o = {.format = format, .max_bytes = max};
	struct timeline_writer *w;
	struct diag diag = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_diag_ok(timeline_writer_new(&o, out, &w, &diag), &diag);
	for (size_t at = 0, k; at < n; at += k) {
		k = n - at < piece ? n - at : piece;
		assert_diag_ok(timeline_writer_feed(w, data + at, k, &diag), &diag);
	}
	assert_diag_ok(timeline_writer_finish(w, json_pack("{s:s}", "program", "test"), &diag),
		       &diag);
	if (counts)
		*counts = timeline_writer_counts(w);
	timeline_writer_free(w);
	fclose(out);
	return text;
}

/*
 * Checks that a file in Chrome's format is balanced and in order per thread; returns the number of
 * events of this kind.
 */
static unsigned int check_chrome(const char *text, const char *kind)
{
	json_t *root = json_loads(text, 0, NULL), *events, *e;
	int depth[16] = {0};
	double last[16] = {0};
	unsigned int found = 0;
	size_t i;

	cr_assert(root, "%s", text);
	events = json_object_get(root, "traceEvents");
	cr_assert(json_is_array(events));
	json_array_foreach(events, i, e)
	{
		const char *ph = json_string_value(json_object_get(e, "ph"));
		const char *cat = json_string_value(json_object_get(e, "cat"));
		json_int_t tid = json_integer_value(json_object_get(e, "tid"));
		double ts = json_number_value(json_object_get(e, "ts"));

		cr_assert_eq(json_integer_value(json_object_get(e, "pid")), 42);
		cr_assert(tid >= 0 && tid < 16);
		if (*ph == 'M')
			continue;
		cr_assert(ts >= last[tid]);
		last[tid] = ts;
		depth[tid] += *ph == 'B' ? 1 : *ph == 'E' ? -1 : 0;
		cr_assert(depth[tid] >= 0);
		found += kind && strcmp(cat, kind) == 0;
	}
	for (int t = 0; t < 16; t++)
		cr_assert_eq(depth[t], 0);
	json_decref(root);
	return found;
}

static json_t *chrome_other(const char *text)
{
	json_t *root = json_loads(text, 0, NULL);
	json_t *other = json_incref(json_object_get(root, "otherData"));

	json_decref(root);
	return other;
}

Test(timeline, rows)
{
	struct rig r = rig_new(0, 2000);
	char *data, *text;
	size_t n;

	event_script_run(r.es, "T1 enter 1 f; T1 +5 enter 2 g 1; T1 +5 leave 2; T2 enter 9 h");
	timeline_finish(r.tl, 1500);
	cr_assert(timeline_finished(r.tl) && timeline_idle(r.tl) && !timeline_drained(r.tl));
	data = take_all(r.tl, &n);
	cr_assert(timeline_drained(r.tl) && timeline_waiting(r.tl) == 0);
	text = render("csv", data, n, n, 0, NULL);
	*strstr(text, "500,0,end,") = '\0';
	cr_assert_str_eq(text,
			 "time,thread,event,name,file,line,caller,cpu,pid\r\n"
			 "0,1,call,\"f\",\"t.py\",1,,0,42\r\n"
			 "5,1,call,\"g\",\"t.py\",2,\"f\",5,42\r\n"
			 "10,1,return,\"g\",\"t.py\",2,\"f\",10,42\r\n"
			 "10,2,call,\"h\",\"t.py\",3,,0,42\r\n"
			 "500,1,close,\"f\",\"t.py\",1,,10,42\r\n"
			 "500,2,close,\"h\",\"t.py\",3,,0,42\r\n",
			 "%s", text);
	free(text);
	free(data);
	rig_free(&r);
	check_no_leaks();
}

Test(timeline, chrome)
{
	struct rig r = rig_new(0, 2000);
	struct timeline_writer_counts c;
	char *data, *text;
	json_t *other;
	size_t n;

	event_script_run(r.es, "T1 enter 1 f; T1 +5 enter 2 g 1; T1 +5 yield 2; T1 enter 2 g 1\n"
			       "T2 enter 9 h; T2 chain resync 9=h; T1 +7 leave 2");
	timeline_finish(r.tl, 1500);
	data = take_all(r.tl, &n);
	for (size_t piece = 1; piece < 200; piece += 13) {
		text = render("chrome", data, n, piece, 0, &c);
		cr_assert_eq(check_chrome(text, "call"), 3);
		cr_assert_eq(check_chrome(text, "resume"), 1);
		cr_assert_eq(check_chrome(text, "lost"), 1);
		other = chrome_other(text);
		cr_assert_eq(json_integer_value(json_object_get(other, "duration_ns")), 500);
		cr_assert_eq(json_integer_value(json_object_get(other, "calls")), 4);
		cr_assert_eq(json_integer_value(json_object_get(other, "returns")), 2);
		cr_assert_eq(json_integer_value(json_object_get(other, "gaps")), 1);
		cr_assert(json_is_false(json_object_get(other, "complete")));
		cr_assert_str_eq(json_string_value(json_object_get(other, "program")), "test");
		json_decref(other);
		free(text);
	}
	cr_assert(strcmp(timeline_format_of_file("x.json"), "chrome") == 0);
	cr_assert(strcmp(timeline_format_of_file("x.csv"), "csv") == 0);
	cr_assert(!timeline_format_of_file("csv") && !timeline_format_of_file(".csv"));
	free(data);
	rig_free(&r);
	check_no_leaks();
}

Test(timeline, cut_off_anywhere)
{
	struct rig r = rig_new(0, 2000);
	char *data, *text;
	size_t n;

	event_script_run(r.es, "T1 enter 1 f; T1 +5 enter 2 g 1; T2 enter 9 h; T1 +5 leave 2");
	timeline_finish(r.tl, 1500);
	data = take_all(r.tl, &n);
	for (size_t k = 0; k < n; k++) {
		text = render("chrome", data, k, k + 1, 0, NULL);
		check_chrome(text, NULL);
		free(text);
	}
	free(data);
	rig_free(&r);
	check_no_leaks();
}

/* n calls of one function below another one, at intervals of 2 ns. */
static void many_calls(struct rig *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		event_script_run(r->es, "T1 +1 enter 2 g 1; T1 +1 leave 2");
}

Test(timeline, a_reader_that_is_too_slow)
{
	struct rig r = rig_new(TIMELINE_BUFFER_MIN, UINT64_MAX);
	struct timeline_writer_counts c;
	char *first, *second, *both, *text;
	size_t n1, n2;
	json_t *other;

	event_script_run(r.es, "T1 enter 1 f");
	many_calls(&r, 2000);
	cr_assert_leq(timeline_waiting(r.tl), TIMELINE_BUFFER_MIN * 3 / 2);
	cr_assert(timeline_dropped(r.tl) > 0);
	first = take_all(r.tl, &n1);
	many_calls(&r, 100);
	timeline_finish(r.tl, 1000000);
	second = take_all(r.tl, &n2);
	both = malloc(n1 + n2);
	memcpy(both, first, n1);
	memcpy(both + n1, second, n2);
	text = render("chrome", both, n1 + n2, 4096, 0, &c);
	cr_assert_eq(c.calls + c.returns + c.dropped, 1 + 2 * 2100);
	cr_assert_eq(c.dropped, timeline_dropped(r.tl));
	cr_assert_eq(check_chrome(text, "dropped"), 1);
	cr_assert_eq(check_chrome(text, "call"), c.calls);
	other = chrome_other(text);
	cr_assert_eq(json_integer_value(json_object_get(other, "dropped")), c.dropped);
	json_decref(other);
	free(text);
	text = render("csv", both, n1 + n2, 4096, 0, NULL);
	cr_assert(strstr(text, ",dropped,"));
	free(text);
	free(both);
	free(first);
	free(second);
	rig_free(&r);
	check_no_leaks();
}

Test(timeline, the_largest_file)
{
	static const char *const kinds[] = {"chrome", "csv"};
	struct rig r = rig_new(0, UINT64_MAX);
	struct timeline_writer_counts c;
	size_t n;
	char *data;

	event_script_run(r.es, "T1 enter 1 f");
	many_calls(&r, 6000);
	timeline_finish(r.tl, 1000000);
	data = take_all(r.tl, &n);
	for (int i = 0; i < 2; i++) {
		char *text = render(kinds[i], data, n, 1 << 20, TIMELINE_SIZE_MIN, &c);

		cr_assert(strlen(text) <= TIMELINE_SIZE_MIN && strlen(text) > TIMELINE_SIZE_MIN / 2,
			  "%s: %zu", kinds[i], strlen(text));
		cr_assert(c.calls > 100 && c.calls < 6000);
		if (i == 0) {
			json_t *other = chrome_other(text);

			check_chrome(text, NULL);
			cr_assert(json_is_true(json_object_get(other, "size_limit_reached")));
			cr_assert(json_is_false(json_object_get(other, "complete")));
			json_decref(other);
		}
		free(text);
	}
	free(data);
	rig_free(&r);
	check_no_leaks();
}

Test(timeline, hostile_names)
{
	const struct timeline_rec begin = {
		.size = sizeof(begin), .type = TIMELINE_BEGIN, .func = TIMELINE_VERSION};
	const struct timeline_rec source = {
		.size = sizeof(source), .type = TIMELINE_SOURCE, .tid = 42};
	size_t n = 0;
	uint32_t k = 0;
	char *data = NULL, *text;
	FILE *f = open_memstream(&data, &n);

	fwrite(&begin, sizeof(begin), 1, f);
	fwrite(&source, sizeof(source), 1, f);
	for (; hostile_names[k]; k++) {
		const char *name = hostile_names[k];
		struct timeline_rec func = {.type = TIMELINE_FUNC, .func = k};
		struct timeline_rec call = {.size = sizeof(call), .type = WATCH_CALL, .tid = 1};

		func.size = (uint32_t)(sizeof(func) + 3 * (strlen(name) + 1));
		call.func = k;
		fwrite(&func, sizeof(func), 1, f);
		for (int i = 0; i < 3; i++)
			fwrite(name, strlen(name) + 1, 1, f);
		fwrite(&call, sizeof(call), 1, f);
	}
	fclose(f);
	text = render("chrome", data, n, n, UINT64_C(16) << 20, NULL);
	cr_assert_eq(check_chrome(text, "call"), k);
	free(text);
	text = render("csv", data, n, n, UINT64_C(16) << 20, NULL);
	for (char *p = text; (p = strchr(p, '\r'));)
		memmove(p, p + 1, strlen(p));
	cr_assert(report_harmless(text, strlen(text)));
	free(text);
	free(data);
	check_no_leaks();
}

/* Records that are not a timeline's are refused. */
Test(timeline, damaged_records)
{
	static const struct {
		const char *why;
		struct timeline_rec rec;
		bool begun;
	} bad[] = {
		{"smaller than a record", {.size = 8}, false},
		{"larger than a record may be", {.size = UINT32_MAX}, false},
		{"another version", {.size = 48, .type = TIMELINE_BEGIN, .func = 99}, false},
		{"no BEGIN", {.size = 48, .type = TIMELINE_SOURCE}, false},
		{"two", {.size = 48, .type = TIMELINE_BEGIN, .func = TIMELINE_VERSION}, true},
		{"no such type", {.size = 48, .type = 50}, true},
		{"no such source", {.size = 48, .type = WATCH_CALL}, true},
		{"the second source first",
		 {.size = 48, .type = TIMELINE_SOURCE, .source = 1},
		 true},
		{"a trigger that nobody waits for", {.size = 48, .type = TIMELINE_TRIGGER}, true},
		{"a condition without an end", {.size = 48, .type = TIMELINE_RECENT}, true},
		{"names without an end", {.size = 48, .type = TIMELINE_FUNC}, true},
	};
	const struct timeline_rec begin = {
		.size = sizeof(begin), .type = TIMELINE_BEGIN, .func = TIMELINE_VERSION};
	const struct timeline_writer_opts o = {.format = "csv"};
	FILE *out = fopen("/dev/null", "w");

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct timeline_writer *w;
		struct diag diag = {0};

		assert_ok(timeline_writer_new(&o, out, &w, NULL));
		if (bad[i].begun)
			assert_ok(timeline_writer_feed(w, &begin, sizeof(begin), NULL));
		cr_assert(timeline_writer_feed(w, &bad[i].rec, sizeof(bad[i].rec), &diag) < 0 &&
				  diag.exit == PYP_EXIT_FAILURE,
			  "%s", bad[i].why);
		timeline_writer_free(w);
	}
	fclose(out);
	check_no_leaks();
}
