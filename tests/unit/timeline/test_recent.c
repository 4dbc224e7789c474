// SPDX-License-Identifier: BSD-2-Clause
/*
 * timeline of the recent past: what is kept by age and by size, that the file is complete and balanced
 * whatever was discarded before, that each call and return is in it or counted, and what it reports
 * of the trigger.
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "harness/event_script.h"
#include "harness/test.h"
#include "timeline/recent.h"
#include "timeline/timeline.h"
#include "timeline/writer.h"

#define WHAT_MAX 512

struct rig {
	struct event_script *es;
	struct timeline *tl;
	uint32_t source;
};

static struct rig rig_new(uint64_t keep_ns, uint64_t buffer, const char *condition)
{
	struct rig r = {.es = event_script_new(NULL)};
	struct timeline_opts o = {.buffer = buffer,
				  .keep_ns = keep_ns,
				  .from_ns = 1000,
				  .until_ns = UINT64_MAX,
				  .from_unix_ns = 5000};

	if (condition)
		assert_ok(trigger_new(condition, &o.trigger, NULL));
	r.tl = timeline_new(&o);
	cr_assert(r.tl && timeline_is_recent(r.tl));
	assert_ok(timeline_add(r.tl, 42, event_script_profile(r.es), &r.source));
	return r;
}

static void rig_free(struct rig *r)
{
	timeline_free(r->tl);
	event_script_free(r->es);
}

/* The file. Nothing was available before the end. */
static char *finish(struct rig *r, const char *format, uint64_t now_ns,
		    struct timeline_writer_counts *counts, char *what)
{
	const struct timeline_writer_opts o = {.format = format, .max_bytes = 64 << 20};
	struct timeline_writer *w;
	struct diag diag = {0};
	char *text = NULL, *data;
	size_t size, n;
	FILE *out = open_memstream(&text, &size);

	assert_diag_ok(timeline_writer_new(&o, out, &w, &diag), &diag);
	timeline_take(r->tl, &data, &n);
	cr_assert(!data && n == 0);
	timeline_finish(r->tl, now_ns);
	while (!timeline_drained(r->tl)) {
		timeline_take(r->tl, &data, &n);
		assert_diag_ok(timeline_writer_feed(w, data, n, &diag), &diag);
		free(data);
	}
	cr_assert(timeline_writer_ended(w));
	assert_diag_ok(timeline_writer_finish(w, NULL, &diag), &diag);
	*counts = timeline_writer_counts(w);
	if (what)
		snprintf(what, WHAT_MAX, "%s",
			 timeline_writer_trigger(w) ? timeline_writer_trigger(w) : "");
	timeline_writer_free(w);
	fclose(out);
	return text;
}

/* The rows, without the last one */
static void expect_rows(struct rig *r, uint64_t now_ns, const char *rows)
{
	struct timeline_writer_counts c;
	char *text = finish(r, "csv", now_ns, &c, NULL), *end = strstr(text, ",0,end,");

	while (end[-1] != '\n')
		end--;
	*end = '\0';
	cr_assert_str_eq(strchr(text, '\n') + 1, rows, "%s", text);
	free(text);
	rig_free(r);
}

Test(recent, by_age)
{
	struct rig r = rig_new(100, 0, NULL);

	/* All of it is younger: nothing is discarded. */
	event_script_run(r.es, "T1 enter 1 f; T1 +5 enter 2 g 1; T1 +5 leave 2");
	expect_rows(&r, 1050,
		    "0,1,call,\"f\",\"t.py\",1,,0,42\r\n"
		    "5,1,call,\"g\",\"t.py\",2,\"f\",5,42\r\n"
		    "10,1,return,\"g\",\"t.py\",2,\"f\",10,42\r\n"
		    "50,1,close,\"f\",\"t.py\",1,,10,42\r\n");
	/* It begins with the frames that are open then, and the thread's CPU time. */
	r = rig_new(100, 0, NULL);
	event_script_run(r.es, "T1 enter 1 f; T1 +5 enter 2 g 1; T1 +5 leave 2\n"
			       "T1 +200 enter 3 h 1; T1 +80 enter 4 k 3; T1 +10 leave 4");
	expect_rows(&r, 1350,
		    "0,1,open,\"f\",\"t.py\",1,,210,42\r\n"
		    "0,1,open,\"h\",\"t.py\",3,\"f\",210,42\r\n"
		    "40,1,call,\"k\",\"t.py\",4,\"h\",290,42\r\n"
		    "50,1,return,\"k\",\"t.py\",4,\"h\",300,42\r\n"
		    "100,1,close,\"h\",\"t.py\",3,\"f\",300,42\r\n"
		    "100,1,close,\"f\",\"t.py\",1,,300,42\r\n");
	check_no_leaks();
}

Test(recent, threads)
{
	struct rig r = rig_new(100, 0, NULL);

	/* Thread 2 ends and thread 3 waits before; the tid 2 is used again. */
	event_script_run(r.es, "T2 enter 1 f; T2 +5 leave 1; T2 exit; T3 enter 2 g\n"
			       "T1 +500 enter 3 h; T2 +1 enter 4 k");
	expect_rows(&r, 1510,
		    "0,3,open,\"g\",\"t.py\",2,,0,42\r\n"
		    "95,1,call,\"h\",\"t.py\",3,,0,42\r\n"
		    "96,2,call,\"k\",\"t.py\",4,,0,42\r\n"
		    "100,3,close,\"g\",\"t.py\",2,,0,42\r\n"
		    "100,1,close,\"h\",\"t.py\",3,,0,42\r\n"
		    "100,2,close,\"k\",\"t.py\",4,,0,42\r\n");
	check_no_leaks();
}

/* Balanced per thread, in order, and each row's caller is the frame below. Returns the rows. */
static unsigned int check_rows(char *text)
{
	char stack[8][64][32] = {0};
	int depth[8] = {0};
	unsigned long last[8] = {0}, ts, tid;
	unsigned int n = 0;
	char kind[16], name[32];

	for (char *line = strchr(text, '\n') + 1;; line = strchr(line, '\n') + 1) {
		cr_assert(sscanf(line, "%lu,%lu,%15[^,],%31[^,]", &ts, &tid, kind, name) == 4 &&
			  tid < 8);
		if (strcmp(kind, "end") == 0)
			break;
		cr_assert(ts >= last[tid], "%s", line);
		last[tid] = ts;
		if (strcmp(kind, "call") == 0 || strcmp(kind, "open") == 0) {
			cr_assert(depth[tid] < 64);
			snprintf(stack[tid][depth[tid]++], sizeof(name), "%s", name);
		} else if (strcmp(kind, "trigger") != 0) {
			cr_assert(depth[tid] > 0 && strcmp(stack[tid][--depth[tid]], name) == 0,
				  "%.60s", line);
		}
		n++;
	}
	for (int t = 0; t < 8; t++)
		cr_assert_eq(depth[t], 0);
	return n;
}

/* Calls and returns of two threads, one of them ever deeper and back */
static unsigned int many(struct rig *r, unsigned int n)
{
	char line[64];

	for (unsigned int i = 0; i < n; i++) {
		unsigned int d = i % 40;

		if (d < 20)
			snprintf(line, sizeof(line), "T1 +1 enter 0x%x %s 0x%x", 0x100 + 16 * d,
				 d % 2 ? "f" : "g", d ? 0xf0 + 16 * d : 0);
		else
			snprintf(line, sizeof(line), "T1 +1 leave 0x%x", 0x100 + 16 * (39 - d));
		event_script_run(r->es, line);
		event_script_run(r->es, "T2 +1 enter 0x900 k; T2 +1 leave 0x900");
	}
	return 3 * n;
}

Test(recent, by_size)
{
	struct rig r = rig_new(UINT64_C(1) << 40, TIMELINE_BUFFER_MIN, NULL);
	struct timeline_writer_counts c;
	unsigned int all, rows;
	char *text;

	all = many(&r, 4003);
	cr_assert_eq(timeline_dropped(r.tl), 0);
	text = finish(&r, "csv", 20000, &c, NULL);
	rows = check_rows(text);
	cr_assert(rows > TIMELINE_BUFFER_MIN / 48 / 2 && rows < TIMELINE_BUFFER_MIN / 48 + 80, "%u",
		  rows);
	cr_assert(c.beyond_size > all / 2 && c.dropped == 0);
	cr_assert_eq(c.calls + c.returns + c.older + c.beyond_size, all,
		     "%lu + %lu + %lu + %lu, %u", c.calls, c.returns, c.older, c.beyond_size, all);
	cr_assert(strstr(text, "\"\"complete\"\":false"), "%s", strstr(text, ",end,"));
	free(text);
	rig_free(&r);
	/* By age, over and over: that is no loss. */
	r = rig_new(300, TIMELINE_BUFFER_MIN, NULL);
	all = many(&r, 8003);
	text = finish(&r, "csv", 1000 + all, &c, NULL);
	check_rows(text);
	cr_assert(c.beyond_size == 0 && c.until_ns - c.from_ns == 300);
	cr_assert_eq(c.calls + c.returns + c.older, all);
	cr_assert(c.calls + c.returns >= 298 && c.calls + c.returns <= 302);
	cr_assert(strstr(text, "\"\"complete\"\":true"), "%s", strstr(text, ",end,"));
	free(text);
	rig_free(&r);
	check_no_leaks();
}

/* Names are kept to the end, in at most half of the memory; those beyond are missing. */
Test(recent, names)
{
	const struct recent_opts o = {.max_bytes = TIMELINE_BUFFER_MIN};
	struct timeline_rec name = {.type = TIMELINE_FUNC};
	struct timeline_rec call = {.type = WATCH_CALL, .tid = 1},
			    leave = {.type = WATCH_RETURN, .tid = 1};
	struct recent *rc = recent_new(&o);
	struct pieces out = {0};
	char text[1000] = {0};

	for (uint32_t i = 0; i < 100; i++) {
		name.func = call.func = leave.func = i;
		cr_assert(recent_name(rc, &name, text, sizeof(text)));
		cr_assert(recent_add(rc, &call, NULL, 0) && recent_add(rc, &leave, NULL, 0));
	}
	recent_end(rc, 5);
	cr_assert_eq(recent_counts(rc).beyond_size, 0);
	assert_ok(recent_take(rc, &out));
	cr_assert_lt(out.n, TIMELINE_BUFFER_MIN / 2 + 200 * sizeof(call) + 1);
	cr_assert_gt(out.n, TIMELINE_BUFFER_MIN / 4 + 200 * sizeof(call));
	pieces_deinit(&out);
	recent_free(rc);
	check_no_leaks();
}

Test(recent, trigger)
{
	struct rig r = rig_new(2000000, 0, "slow:f:1ms");
	const struct timeline_moment before = {.current_ns = 2001500}, at = {.current_ns = 2101500};

	/* By an event, which is the last one; the moment is that of the limit. */
	event_script_run(r.es,
			 "T1 enter 1 f; T2 enter 9 k; T1 +1500000 enter 2 g 1; T1 +1 leave 2");
	cr_assert(timeline_is_met(r.tl));
	expect_rows(&r, 9000000,
		    "0,1,call,\"f\",\"t.py\",1,,0,42\r\n"
		    "0,2,call,\"k\",\"t.py\",2,,0,42\r\n"
		    "1000000,1,trigger,\"a call of f (t.py:1) has taken 1 ms\",,,,0,42\r\n"
		    "1500000,1,call,\"g\",\"t.py\",3,\"f\",1500000,42\r\n"
		    "1500000,1,close,\"g\",\"t.py\",3,\"f\",1500000,42\r\n"
		    "1500000,1,close,\"f\",\"t.py\",1,,1500000,42\r\n"
		    "1500000,2,close,\"k\",\"t.py\",2,,0,42\r\n");
	/* By time */
	r = rig_new(2000000, 0, "slow:f:1ms");
	event_script_run(r.es, "T1 +100500 enter 2 g; T2 +1000000 enter 1 f");
	timeline_check(r.tl, r.source, &before);
	cr_assert(!timeline_is_met(r.tl));
	timeline_check(r.tl, r.source, &at);
	cr_assert(timeline_is_met(r.tl));
	event_script_run(r.es, "T1 +1000001 leave 2");
	expect_rows(&r, 9000000,
		    "0,1,call,\"g\",\"t.py\",1,,0,42\r\n"
		    "1000000,2,call,\"f\",\"t.py\",2,,0,42\r\n"
		    "2000000,2,trigger,\"a call of f (t.py:2) has taken 1 ms\",,,,0,42\r\n"
		    "2000000,1,close,\"g\",\"t.py\",1,,0,42\r\n"
		    "2000000,2,close,\"f\",\"t.py\",2,,0,42\r\n");
	check_no_leaks();
}

/* CPU time is ahead of the events that were read: the moment is among them nevertheless. */
Test(recent, trigger_ahead_of_events)
{
	const uint64_t begin = 1000000, s = 1000000000;
	const struct timeline_moment before = {begin, begin, 1};
	const struct timeline_moment at = {begin + s, begin + s + 2000000, s / 2};
	struct rig r = rig_new(10 * s, 0, "cpu:20%");

	event_script_run(r.es, "T42 enter 1 f");
	timeline_check(r.tl, r.source, &before);
	event_script_run(r.es, "T42 +1000000000 enter 2 g 1");
	timeline_check(r.tl, r.source, &at);
	cr_assert(timeline_is_met(r.tl));
	event_script_run(r.es, "T42 +1000000 leave 2; T42 +500000 enter 2 g 1; T1 +1 enter 9 k");
	expect_rows(&r, 9 * s,
		    "0,42,call,\"f\",\"t.py\",1,,0,42\r\n"
		    "1000000000,42,call,\"g\",\"t.py\",2,\"f\",1000000000,42\r\n"
		    "1001000000,42,return,\"g\",\"t.py\",2,\"f\",1001000000,42\r\n"
		    "1001500000,42,call,\"g\",\"t.py\",2,\"f\",1001500000,42\r\n"
		    "1001500001,1,call,\"k\",\"t.py\",3,,0,42\r\n"
		    "1002999000,42,trigger,\"process 42 has used 50% of a CPU over 1 "
		    "s\",,,,1001500000,42\r\n"
		    "1002999000,42,close,\"g\",\"t.py\",2,\"f\",1001500000,42\r\n"
		    "1002999000,42,close,\"f\",\"t.py\",1,,1001500000,42\r\n"
		    "1002999000,1,close,\"k\",\"t.py\",3,,0,42\r\n");
	check_no_leaks();
}

/* The condition's own record is kept, however short the time is. */
Test(recent, a_trigger_before_what_is_kept)
{
	struct rig r = rig_new(100, 0, "slow:f:1ms");
	struct timeline_writer_counts c;
	char what[WHAT_MAX], *text;

	event_script_run(r.es, "T1 enter 1 f; T1 +5000000 enter 2 g 1");
	text = finish(&r, "chrome", 9000000, &c, what);
	cr_assert_str_eq(what, "a call of f (t.py:1) has taken 1 ms");
	cr_assert(strstr(text, "\"cat\":\"trigger\",\"s\":\"g\"") && strstr(text, "\"at_ns\":0"),
		  "%s", text);
	cr_assert(strstr(text, "\"condition\":\"slow:f:1ms\",\"met\":true"), "%s", text);
	cr_assert_eq(c.until_ns - c.from_ns, 100);
	free(text);
	rig_free(&r);
	/* It is not met. */
	r = rig_new(100, 0, "cpu:100%");
	event_script_run(r.es, "T1 enter 1 f; T1 +5000000 enter 2 g 1");
	text = finish(&r, "chrome", 9000000, &c, what);
	cr_assert_str_eq(what, "");
	cr_assert(strstr(text, "\"condition\":\"cpu:100%\",\"met\":false"), "%s", text);
	free(text);
	rig_free(&r);
	check_no_leaks();
}

Test(recent, two_processes)
{
	struct rig r = rig_new(100, 0, NULL);
	struct event_script *other = event_script_new(NULL);
	struct timeline_writer_counts c;
	uint32_t source;
	char *text;

	assert_ok(timeline_add(r.tl, 43, event_script_profile(other), &source));
	event_script_run(r.es, "T1 enter 1 f");
	event_script_run(other, "T1 enter 1 g; T1 +500 enter 2 h 1");
	text = finish(&r, "csv", 1600, &c, NULL);
	cr_assert(strstr(text, "0,1,open,\"f\",\"t.py\",1,,0,42\r\n"), "%s", text);
	cr_assert(strstr(text, "0,1,open,\"g\",\"t.py\",1,,0,43\r\n0,1,call,\"h\""), "%s", text);
	free(text);
	rig_free(&r);
	event_script_free(other);
	check_no_leaks();
}
