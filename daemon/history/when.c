// SPDX-License-Identifier: BSD-2-Clause
/* Times and spans as people write them: see when.h. */
#include "history/when.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/parse.h"

#define NS    UINT64_C(1000000000)
#define DAY_S INT64_C(86400)

static int64_t local_offset(int64_t unix_s)
{
	time_t t = (time_t)unix_s;
	struct tm tm;

	return localtime_r(&t, &tm) ? tm.tm_gmtoff : 0;
}

struct when when_local(void)
{
	tzset();
	return (struct when){.now_ns = clock_unix_ns(), .offset = local_offset};
}

/* ---- calendar ---- */

static bool is_leap(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in(int64_t year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

/* Days since 1970-01-01; year >= 1970. */
static int64_t days_of(int64_t year, int month, int day)
{
	int64_t days = day - 1;

	for (int64_t y = 1970; y < year; y++)
		days += is_leap(y) ? 366 : 365;
	for (int m = 1; m < month; m++)
		days += days_in(year, m);
	return days;
}

/* Around a change of the zone's offset, the offset of the result counts. */
static int64_t unix_of_local(const struct when *w, int64_t local_s)
{
	int64_t guess = local_s - w->offset(local_s);

	return local_s - w->offset(guess);
}

static int64_t now_s(const struct when *w)
{
	return (int64_t)(w->now_ns / NS);
}

/* The local midnight that began today. */
static int64_t today_local(const struct when *w)
{
	int64_t local = now_s(w) + w->offset(now_s(w));

	return local - local % DAY_S;
}

/* ---- parts; each returns the position after it, or NULL ---- */

static const char *read_number(const char *p, int digits, int max, int *ret)
{
	int v = 0;

	for (int i = 0; i < digits; i++, p++) {
		if (*p < '0' || *p > '9')
			return NULL;
		v = 10 * v + (*p - '0');
	}
	if (v > max)
		return NULL;
	*ret = v;
	return p;
}

/* "14:00", "9:30", "14:00:30" → seconds of the day */
static const char *read_clock(const char *p, int64_t *ret_s)
{
	const char *colon = strchr(p, ':');
	int hour, minute, second = 0;

	p = colon ? read_number(p, colon == p + 1 ? 1 : 2, 23, &hour) : NULL;
	if (!p || *p != ':')
		return NULL;
	p = read_number(p + 1, 2, 59, &minute);
	if (p && *p == ':')
		p = read_number(p + 1, 2, 59, &second);
	if (p)
		*ret_s = hour * 3600 + minute * 60 + second;
	return p;
}

/* "2026-11-26" → seconds of its midnight, as if UTC */
static const char *read_date(const char *p, int64_t *ret_s)
{
	int year, month, day;

	p = read_number(p, 4, 9999, &year);
	p = p && *p == '-' ? read_number(p + 1, 2, 12, &month) : NULL;
	p = p && *p == '-' ? read_number(p + 1, 2, 31, &day) : NULL;
	if (!p || year < 1970 || month < 1 || day < 1 || day > days_in(year, month))
		return NULL;
	*ret_s = days_of(year, month, day) * DAY_S;
	return p;
}

/* "Z", "+01:00", "-0530" → seconds ahead of UTC */
static const char *read_zone(const char *p, int64_t *ret_s)
{
	int sign = *p == '-' ? -1 : 1, hours, minutes;

	*ret_s = 0;
	if (*p == 'Z')
		return p + 1;
	p = *p == '+' || *p == '-' ? read_number(p + 1, 2, 14, &hours) : NULL;
	p = p ? read_number(p + (*p == ':'), 2, 59, &minutes) : NULL;
	if (p)
		*ret_s = sign * (hours * 3600 + minutes * 60);
	return p;
}

/* "-5min": also the units of parse_duration(), and d. */
static int read_ago(const char *p, uint64_t *ret_ns)
{
	size_t n = strcspn(p, "abcdefghijklmnopqrstuvwxyz");
	char number[32];
	uint64_t ns;

	if (n >= sizeof(number) - 2)
		return -EINVAL;
	memcpy(number, p, n);
	snprintf(number + n, sizeof(number) - n, "%s",
		 strcmp(p + n, "min") == 0 ? "m"
		 : strcmp(p + n, "d") == 0 ? "h"
					   : "");
	if (!number[n])
		return parse_duration(p, ret_ns);
	if (parse_duration(number, &ns) < 0)
		return -EINVAL;
	*ret_ns = strcmp(p + n, "d") == 0 ? 24 * ns : ns;
	return 0;
}

/* ---- times ---- */

/* Returns the text after a word and blanks; NULL: it does not begin with the word. */
static const char *after_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(text, word, n) != 0 || (text[n] && text[n] != ' '))
		return NULL;
	return text + n + strspn(text + n, " ");
}

/* The clock on a day that begins at this local midnight. */
static int clock_on(const struct when *w, int64_t midnight, const char *text, int64_t *ret_s)
{
	int64_t s = 0;

	if (*text) {
		text = read_clock(text, &s);
		if (!text || *text)
			return -EINVAL;
	}
	*ret_s = unix_of_local(w, midnight + s);
	return 0;
}

static int date_time(const struct when *w, const char *text, int64_t *ret_s)
{
	int64_t day, s = 0, zone;
	const char *p = read_date(text, &day);

	if (!p)
		return -EINVAL;
	if (*p == 'T' || *p == ' ')
		p = read_clock(p + 1, &s);
	if (!p)
		return -EINVAL;
	if (!*p) {
		*ret_s = unix_of_local(w, day + s);
		return 0;
	}
	p = read_zone(p, &zone);
	*ret_s = day + s - zone;
	return p && !*p && *ret_s >= 0 ? 0 : -EINVAL;
}

static int parse_seconds(const struct when *w, const char *text, int64_t *ret_s)
{
	const char *rest = after_word(text, "today");

	if (rest)
		return clock_on(w, today_local(w), rest, ret_s);
	rest = after_word(text, "yesterday");
	if (rest)
		return clock_on(w, today_local(w) - DAY_S, rest, ret_s);
	if (date_time(w, text, ret_s) == 0)
		return 0;
	if (!*text || clock_on(w, today_local(w), text, ret_s) < 0)
		return -EINVAL;
	return *ret_s <= now_s(w) ? 0 : clock_on(w, today_local(w) - DAY_S, text, ret_s);
}

static int parse(const struct when *w, const char *text, uint64_t *ret_ns)
{
	uint64_t ago;
	int64_t s;

	if (strcmp(text, "now") == 0) {
		*ret_ns = w->now_ns;
		return 0;
	}
	if (text[0] == '-') {
		if (read_ago(text + 1, &ago) < 0 || ago > w->now_ns)
			return -EINVAL;
		*ret_ns = w->now_ns - ago;
		return 0;
	}
	if (parse_seconds(w, text, &s) < 0 || s < 0)
		return -EINVAL;
	*ret_ns = (uint64_t)s * NS;
	return 0;
}

int when_time(const struct when *w, const char *text, uint64_t *ret_ns, struct diag *diag)
{
	if (parse(w, text, ret_ns) == 0)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"expected e.g. 14:00, -5min, 'yesterday 14:00', 2026-11-26T14:00",
			"invalid time '%.100s'", text);
}

/* ---- spans ---- */

#define SPAN_TEXT 128

/* Splits "A..B", or "… 14:00-14:05" at the hyphen between two clock times. NULL: it is one time. */
static char *split(char *text)
{
	char *dots = strstr(text, ".."), *hyphen = strrchr(text, '-');
	int64_t s;

	if (dots) {
		*dots = '\0';
		return dots + 2;
	}
	if (!hyphen || hyphen == text || !strchr(hyphen, ':') ||
	    !memchr(text, ':', (size_t)(hyphen - text)))
		return NULL;
	/* the offset of a zone is no clock time of its own: it follows one with a date */
	if (!read_clock(hyphen + 1, &s) || (strchr(text, 'T') && strchr(text, 'T') < hyphen))
		return NULL;
	*hyphen = '\0';
	return hyphen + 1;
}

/* A second clock time without a day is on the first one's day, or the next. */
static int parse_end(const struct when *w, const char *text, uint64_t from, uint64_t *ret_ns)
{
	const int64_t from_s = (int64_t)(from / NS);
	int64_t local, s, end;
	const char *p = read_clock(text, &s);

	if (!p || *p)
		return parse(w, text, ret_ns);
	local = from_s + w->offset(from_s);
	end = unix_of_local(w, local - local % DAY_S + s);
	if (end < from_s)
		end = unix_of_local(w, local - local % DAY_S + DAY_S + s);
	*ret_ns = (uint64_t)end * NS;
	return 0;
}

/* "5min": the last five minutes. A hyphen in front would make it an option of a command line. */
static bool parse_last(const struct when *w, const char *text, struct when_span *ret)
{
	uint64_t ago;

	if (strpbrk(text, ":-.") || read_ago(text, &ago) < 0 || ago > w->now_ns)
		return false;
	*ret = (struct when_span){w->now_ns - ago, w->now_ns};
	return true;
}

static int parse_span(const struct when *w, char *text, struct when_span *ret)
{
	char *end = split(text);
	int r;

	if (!end && parse_last(w, text, ret))
		return 0;
	r = parse(w, text, &ret->from_ns);

	if (r < 0)
		return r;
	if (end)
		return parse_end(w, end, ret->from_ns, &ret->to_ns);
	ret->to_ns = w->now_ns;
	return text[0] == '-' ? 0 : -EINVAL;
}

int when_span(const struct when *w, const char *text, struct when_span *ret, struct diag *diag)
{
	char copy[SPAN_TEXT];
	struct when_span span = {0};

	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy) ||
	    parse_span(w, copy, &span) < 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"expected e.g. 14:00-14:05, 'yesterday 14:00-14:05', 5min, "
				"2026-11-26T14:00..2026-11-26T15:00",
				"invalid span '%.100s'", text);
	if (span.to_ns <= span.from_ns)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "put the earlier time first",
				"the span '%.100s' is empty", text);
	*ret = span;
	return 0;
}
