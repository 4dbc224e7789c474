// SPDX-License-Identifier: BSD-2-Clause
/* Points in time: see fleet_time.h. */
#include "fleet_time.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"

#define NS_PER_S UINT64_C(1000000000)

/* The time of day of today, or a date without or with one; *ret_rest: what follows. */
static bool parse_local(const char *text, uint64_t now_s, struct tm *tm, const char **ret_rest)
{
	static const char *const formats[] = {
		"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
		"%Y-%m-%d",	     "%H:%M:%S",	  "%H:%M",	    NULL};
	time_t now = (time_t)now_s;

	for (const char *const *f = formats; *f; f++) {
		if (!localtime_r(&now, tm))
			return false;
		tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
		*ret_rest = strptime(text, *f, tm);
		if (*ret_rest && (!**ret_rest || strcmp(*ret_rest, "Z") == 0))
			return true;
	}
	return false;
}

static int bad_time(const char *text, const char *option, struct diag *diag)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"use now, -15m, 14:00, 2026-11-26 or 2026-11-26T14:00Z",
			"--%s: '%.60s' is not a time", option, text);
}

int fleet_time_parse(const char *text, uint64_t now_s, const char *option, uint64_t *ret,
		     struct diag *diag)
{
	const char *rest;
	uint64_t ns;
	struct tm tm;
	time_t t;

	if (strcmp(text, "now") == 0) {
		*ret = now_s;
		return 0;
	}
	if (text[0] == '-' && parse_duration(text + 1, &ns) == 0 && ns / NS_PER_S <= now_s) {
		*ret = now_s - ns / NS_PER_S;
		return 0;
	}
	if (!parse_local(text, now_s, &tm, &rest))
		return bad_time(text, option, diag);
	tm.tm_isdst = -1;
	t = *rest == 'Z' ? timegm(&tm) : mktime(&tm);
	if (t < 0 || t > UINT32_MAX)
		return bad_time(text, option, diag);
	*ret = (uint64_t)t;
	return 0;
}
