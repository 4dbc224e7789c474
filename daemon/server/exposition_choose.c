// SPDX-License-Identifier: BSD-2-Clause
/* Choosing a format by the Accept header (RFC 9110, 12.5.1): see exposition.h. */
#include "server/exposition.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *type, *mime;
	const char *param, *value; /* that a range must have; NULL: none */
} forms[] = {
	[EXPOSITION_OPENMETRICS] = {"application/openmetrics-text",
				    "application/openmetrics-text; version=1.0.0; charset=utf-8",
				    NULL, NULL},
	[EXPOSITION_TEXT] = {"text/plain", "text/plain; version=0.0.4; charset=utf-8", NULL, NULL},
	[EXPOSITION_PROTOBUF] = {"application/vnd.google.protobuf",
				 "application/vnd.google.protobuf; "
				 "proto=io.prometheus.client.MetricFamily; encoding=delimited",
				 "encoding", "delimited"},
};

/* A range of the header: its text, and where it ends */
struct range {
	const char *at, *end;
};

const char *exposition_mime(enum exposition_form form)
{
	return forms[form].mime;
}

static bool is_type(const struct range *r, const char *type)
{
	const size_t n = strcspn(r->at, " \t;,");

	return n == strlen(type) && r->at + n <= r->end && strncasecmp(r->at, type, n) == 0;
}

/* The value of a parameter; NULL: it does not have it. */
static const char *param_of(const struct range *r, const char *name)
{
	const size_t n = strlen(name);

	for (const char *p = memchr(r->at, ';', (size_t)(r->end - r->at)); p;
	     p = memchr(p, ';', (size_t)(r->end - p))) {
		p++;
		p += strspn(p, " \t");
		if (p + n < r->end && strncasecmp(p, name, n) == 0 && p[n] == '=')
			return p + n + 1;
		if (p >= r->end)
			return NULL;
	}
	return NULL;
}

/* 0 to 1000 */
static int quality(const struct range *r)
{
	const char *q = param_of(r, "q");
	int ret = 0;

	if (!q || *q == '1')
		return 1000;
	if (*q != '0' || q[1] != '.')
		return 0;
	q += 2;
	for (int i = 0, unit = 100; i < 3 && *q >= '0' && *q <= '9'; i++, unit /= 10)
		ret += unit * (*q++ - '0');
	return ret;
}

static bool accepts(const struct range *r, enum exposition_form form)
{
	const char *wanted = forms[form].value, *value;

	if (!is_type(r, forms[form].type))
		return false;
	if (!wanted)
		return true;
	value = param_of(r, forms[form].param);
	return value && strncasecmp(value, wanted, strlen(wanted)) == 0;
}

enum exposition_form exposition_choose(const char *accept)
{
	enum exposition_form ret = EXPOSITION_OPENMETRICS;
	int best = 0;

	while (accept && *accept) {
		struct range r;
		int q;

		accept += strspn(accept, " \t,");
		r = (struct range){accept, accept + strcspn(accept, ",")};
		q = quality(&r);
		if (q > best && (is_type(&r, "*/*") || is_type(&r, "application/*"))) {
			ret = EXPOSITION_OPENMETRICS;
			best = q;
		}
		if (q > best && is_type(&r, "text/*")) {
			ret = EXPOSITION_TEXT;
			best = q;
		}
		for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
			if (q > best && accepts(&r, (enum exposition_form)i)) {
				ret = (enum exposition_form)i;
				best = q;
			}
		accept = r.end;
	}
	return ret;
}
