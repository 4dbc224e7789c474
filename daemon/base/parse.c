// SPDX-License-Identifier: BSD-2-Clause
/* Strict number parsers: see parse.h. */
#include "base/parse.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define PID_MAX	       4194304
#define NS_PER_S       UINT64_C(1000000000)
#define DURATION_MAX_S UINT64_C(31536000)

/* Read at least one digit, and advance *s past the digits. */
static int read_digits(const char **s, uint64_t *ret)
{
	const char *p = *s;
	uint64_t v = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	*s = p;
	*ret = v;
	return 0;
}

int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	int r;

	r = read_digits(&s, &v);
	if (r < 0)
		return r;
	if (*s)
		return -EINVAL;
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int parse_pid(const char *s, pid_t *ret)
{
	uint64_t v;
	int r;

	r = parse_u64(s, 1, PID_MAX, &v);
	if (r < 0)
		return r;
	*ret = (pid_t)v;
	return 0;
}

/* Read the digits after the decimal point, in units of 1e-9. Digits beyond the ninth are ignored.
 */
static int read_fraction(const char **s, uint64_t *ret)
{
	uint64_t v = 0, unit = NS_PER_S;
	const char *p = *s;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		unit /= 10;
		v += unit * (uint64_t)(*p - '0');
	}
	*s = p;
	*ret = v;
	return 0;
}

static int unit_find(const char *s, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"", NS_PER_S},		 {"s", NS_PER_S},
		{"ms", NS_PER_S / 1000}, {"us", NS_PER_S / 1000000},
		{"m", 60 * NS_PER_S},	 {"h", 3600 * NS_PER_S},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(s, units[i].name) == 0) {
			*ret_ns = units[i].ns;
			return 0;
		}
	}
	return -EINVAL;
}

int parse_duration(const char *s, uint64_t *ret_ns)
{
	uint64_t whole, fraction = 0, unit, ns;
	int r;

	r = read_digits(&s, &whole);
	if (r < 0)
		return r;
	if (*s == '.') {
		s++;
		r = read_fraction(&s, &fraction);
		if (r < 0)
			return r;
	}
	r = unit_find(s, &unit);
	if (r < 0)
		return r;
	if (__builtin_mul_overflow(whole, unit, &ns) || ns > DURATION_MAX_S * NS_PER_S)
		return -ERANGE;
	/* fraction < 1e9 and unit ≤ 3.6e12: the product needs 128 bits */
	ns += (uint64_t)((unsigned __int128)fraction * unit / NS_PER_S);
	if (!ns)
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}

int parse_size(const char *s, uint64_t *ret)
{
	static const char units[] = "KMG";
	const char *unit;
	uint64_t v;
	int r;

	r = read_digits(&s, &v);
	if (r < 0)
		return r;
	if (*s) {
		unit = strchr(units, *s);
		if (!unit || s[1])
			return -EINVAL;
		if (__builtin_mul_overflow(v, UINT64_C(1) << (10 * (unit - units + 1)), &v))
			return -ERANGE;
	}
	*ret = v;
	return 0;
}

int parse_percent(const char *s, double *ret)
{
	uint64_t whole, ns = 0;
	const char *point;
	int r;

	r = read_digits(&s, &whole);
	point = s;
	if (r == 0 && *s == '.') {
		s++;
		r = read_fraction(&s, &ns);
	}
	if (r < 0)
		return r;
	if (*s || s - point > 7)
		return -EINVAL;
	if (whole > 100 || (whole == 100 && ns))
		return -ERANGE;
	*ret = (double)whole + (double)ns / (double)NS_PER_S;
	return 0;
}
