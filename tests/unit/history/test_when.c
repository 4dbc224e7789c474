// SPDX-License-Identifier: BSD-2-Clause
/* history/when: times and spans as people write them. */
#include "history/when.h"

#include <errno.h>

#include "harness/test.h"

#define NS UINT64_C(1000000000)
/* Thu 2026-11-26 15:30:00 UTC */
#define NOW UINT64_C(1795707000)

static int64_t utc(int64_t s)
{
	(void)s;
	return 0;
}

static int64_t plus_two(int64_t s)
{
	(void)s;
	return 7200;
}

/* Summer time ends on Sun 2026-10-25 at 01:00 UTC: 1792890000. */
static int64_t berlin(int64_t s)
{
	return s < 1792890000 ? 7200 : 3600;
}

static const struct when w = {NOW * NS, utc}, east = {NOW * NS, plus_two};

static int64_t time_in(const struct when *when, const char *text)
{
	struct diag diag = {0};
	uint64_t ns = 0;

	if (when_time(when, text, &ns, &diag) < 0) {
		cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
		return -1;
	}
	return (int64_t)(ns / NS);
}

static struct when_span span_in(const struct when *when, const char *text)
{
	struct when_span span = {0};
	struct diag diag = {0};

	if (when_span(when, text, &span, &diag) < 0)
		cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	span.from_ns /= NS;
	span.to_ns /= NS;
	return span;
}

#define assert_span(text, from, to)                                                                \
	do {                                                                                       \
		struct when_span s_ = span_in(&w, text);                                           \
		cr_assert(s_.from_ns == (uint64_t)(from) && s_.to_ns == (uint64_t)(to),            \
			  "%s: %lu..%lu", text, (unsigned long)s_.from_ns,                         \
			  (unsigned long)s_.to_ns);                                                \
	} while (0)

Test(when, relative_times)
{
	cr_assert_eq(time_in(&w, "now"), NOW);
	cr_assert_eq(time_in(&w, "-5min"), NOW - 300);
	cr_assert_eq(time_in(&w, "-5m"), NOW - 300);
	cr_assert_eq(time_in(&w, "-90s"), NOW - 90);
	cr_assert_eq(time_in(&w, "-90"), NOW - 90);
	cr_assert_eq(time_in(&w, "-2h"), NOW - 7200);
	cr_assert_eq(time_in(&w, "-3d"), NOW - 3 * 86400);
}

Test(when, clock_times_have_been)
{
	cr_assert_eq(time_in(&w, "15:30"), NOW);
	cr_assert_eq(time_in(&w, "9:05:10"), NOW - 6 * 3600 - 24 * 60 - 50);
	cr_assert_eq(time_in(&w, "15:31"), NOW + 60 - 86400, "a later time is yesterday's");
	cr_assert_eq(time_in(&w, "today 15:31"), NOW + 60);
	cr_assert_eq(time_in(&w, "yesterday 14:00"), NOW - 5400 - 86400);
	cr_assert_eq(time_in(&w, "yesterday"), NOW - 15 * 3600 - 1800 - 86400);
}

Test(when, dates_and_zones)
{
	cr_assert_eq(time_in(&w, "2026-11-26"), NOW - 15 * 3600 - 1800);
	cr_assert_eq(time_in(&w, "2026-11-26T15:30"), NOW);
	cr_assert_eq(time_in(&w, "2026-11-26 15:30:01"), NOW + 1);
	cr_assert_eq(time_in(&east, "2026-11-26T17:30"), NOW);
	cr_assert_eq(time_in(&east, "2026-11-26T15:30Z"), NOW);
	cr_assert_eq(time_in(&w, "2026-11-26T17:30+02:00"), NOW);
	cr_assert_eq(time_in(&w, "2026-11-26T10:00-0530"), NOW);
	cr_assert_eq(time_in(&w, "2024-02-29T00:00"), 1709164800);
	cr_assert_eq(time_in(&east, "17:30"), NOW);
	cr_assert_eq(time_in(&east, "17:31"), NOW + 60 - 86400);
}

Test(when, an_offset_that_changes)
{
	const struct when b = {NOW * NS, berlin};

	cr_assert_eq(time_in(&b, "2026-10-24T12:00"), 1792836000);
	cr_assert_eq(time_in(&b, "2026-10-25T12:00"), 1792926000, "the day has 25 hours");
}

Test(when, invalid_times)
{
	static const char *const bad[] = {
		"",	      "14",	     "24:00",	      "14:60",
		"14:00:60",   "14:0",	     "yesterdays",    "-",
		"-5x",	      "-min",	     "--5min",	      "2026-13-01",
		"2026-02-29", "1969-01-01",  "2026-11-26T",   "2026-11-26T14:00+",
		"now ",	      "today 25:00", "-99999999999d", "2026-11-26T14:00Zx",
		"tomorrow",   "yesterday x"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(time_in(&w, bad[i]), -1, "'%s'", bad[i]);
}

Test(when, spans)
{
	assert_span("14:00-14:05", NOW - 5400, NOW - 5100);
	assert_span("yesterday 14:00-14:05", NOW - 5400 - 86400, NOW - 5100 - 86400);
	assert_span("today 15:00-16:00", NOW - 1800, NOW + 1800);
	assert_span("14:00..14:05", NOW - 5400, NOW - 5100);
	assert_span("23:50-00:10", NOW + 30000 - 86400, NOW + 31200 - 86400);
	assert_span("-2h..-1h", NOW - 7200, NOW - 3600);
	assert_span("-5min", NOW - 300, NOW);
	assert_span("5min", NOW - 300, NOW);
	assert_span("2026-11-26T14:00..2026-11-26T14:05", NOW - 5400, NOW - 5100);
	assert_span("2026-11-26T14:00+00:00..14:05", NOW - 5400, NOW - 5100);
	assert_span("2026-11-26 14:00-14:05", NOW - 5400, NOW - 5100);
}

Test(when, invalid_spans)
{
	static const char *const bad[] = {"",	     "14:00",	    "14:00..",
					  "..14:00", "14:00-14:00", "14:05..13:00 ",
					  "a-b",     "-1h..-2h",    "5",
					  "x5min"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (strcmp(bad[i], "5") != 0) /* seconds */
			assert_span(bad[i], 0, 0);
}
