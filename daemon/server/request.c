// SPDX-License-Identifier: BSD-2-Clause
/* Decoded requests: see request.h. */
#include "server/request.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"

void request_init(struct request *rq)
{
	memset(rq, 0, sizeof(*rq));
}

void request_deinit(struct request *rq)
{
	free(rq->target);
	for (size_t i = 0; i < rq->nbody; i++)
		free(rq->body[i]);
	request_init(rq);
}

static int bad_request(struct diag *diag, const char *hint, const char *what)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "%s", what);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decode in place. A plus sign means a blank only in the query. */
static int percent_decode(char *s, bool plus, struct diag *diag)
{
	char *out = s;

	for (; *s; s++) {
		int hi, lo;

		if (*s == '+' && plus) {
			*out++ = ' ';
			continue;
		}
		if (*s != '%') {
			*out++ = *s;
			continue;
		}
		hi = hex_value(s[1]);
		lo = hi < 0 ? -1 : hex_value(s[2]);
		if (lo < 0 || (hi | lo) == 0)
			return bad_request(diag, "encode a literal percent sign as %25",
					   "malformed percent-encoding in the URL");
		*out++ = (char)(hi << 4 | lo);
		s += 2;
	}
	*out = '\0';
	return 0;
}

static int add_param(struct request *rq, const char *key, const char *value, struct diag *diag)
{
	if (rq->nparams == REQUEST_PARAMS_MAX)
		return bad_request(diag, "send fewer parameters", "too many parameters");
	rq->params[rq->nparams++] = (struct request_param){key, value};
	return 0;
}

static int parse_query(struct request *rq, char *query, struct diag *diag)
{
	char *pair;
	int r;

	while ((pair = strsep(&query, "&"))) {
		char *value = strchr(pair, '=');

		if (!*pair)
			continue;
		if (value)
			*value++ = '\0';
		else
			value = pair + strlen(pair);
		r = percent_decode(pair, true, diag);
		if (r == 0)
			r = percent_decode(value, true, diag);
		if (r == 0)
			r = add_param(rq, pair, value, diag);
		if (r < 0)
			return r;
	}
	return 0;
}

int request_parse_target(struct request *rq, const char *uri, struct diag *diag)
{
	char *query;
	int r;

	if (strlen(uri) > REQUEST_URI_MAX)
		return diag_set(diag, -ENAMETOOLONG, PYP_EXIT_USAGE, "send a shorter URL",
				"the URL is longer than %d bytes", REQUEST_URI_MAX);
	if (*uri != '/')
		return bad_request(diag, "a URL begins with a slash", "malformed URL");
	rq->target = strdup(uri);
	if (!rq->target)
		return -ENOMEM;
	query = strchr(rq->target, '?');
	if (query)
		*query++ = '\0';
	r = percent_decode(rq->target, false, diag);
	if (r < 0)
		return r;
	rq->path = rq->target;
	return query ? parse_query(rq, query, diag) : 0;
}

/* The text of a JSON scalar, as in a query string. Owned; NULL: not a scalar, or out of memory. */
static char *scalar_string(const json_t *v)
{
	char *s = NULL;

	switch (json_typeof(v)) {
	case JSON_STRING:
		return strdup(json_string_value(v));
	case JSON_INTEGER:
		return asprintf(&s, "%" JSON_INTEGER_FORMAT, json_integer_value(v)) < 0 ? NULL : s;
	case JSON_REAL:
		return asprintf(&s, "%g", json_real_value(v)) < 0 ? NULL : s;
	case JSON_TRUE:
		return strdup("true");
	case JSON_FALSE:
		return strdup("false");
	default:
		return NULL;
	}
}

/* Keep s until the request is freed, because the JSON tree is freed before the handler runs. */
static char *keep(struct request *rq, char *s)
{
	if (!s || rq->nbody == REQUEST_PARAMS_MAX) {
		free(s);
		return NULL;
	}
	rq->body[rq->nbody++] = s;
	return s;
}

static int add_member(struct request *rq, const char *name, const json_t *v, struct diag *diag)
{
	char *key, *value;

	if (json_is_null(v))
		return 0;
	key = keep(rq, strdup(name));
	value = keep(rq, scalar_string(v));
	if (!key || !value)
		return bad_request(diag, "use strings, numbers and true or false",
				   "the body has an invalid member or too many members");
	return add_param(rq, key, value, diag);
}

static bool is_blank(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!memchr(" \t\r\n", s[i], 4))
			return false;
	return true;
}

int request_parse_body(struct request *rq, const char *body, size_t n, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *root = NULL;
	const char *name;
	json_error_t err;
	json_t *v;
	int r;

	if (is_blank(body, n))
		return 0;
	root = json_loadb(body, n, JSON_REJECT_DUPLICATES, &err);
	if (!root)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "send a JSON object",
				"the body is not JSON: %s (line %d, column %d)", err.text, err.line,
				err.column);
	if (!json_is_object(root))
		return bad_request(diag, "send a JSON object", "the body is not a JSON object");
	json_object_foreach(root, name, v)
	{
		r = add_member(rq, name, v, diag);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Does a comma-separated list contain the word? */
static bool list_has(const char *list, const char *word)
{
	size_t n = strlen(word);

	while (*list) {
		size_t len = strcspn(list, ",");

		if (len == n && memcmp(list, word, n) == 0)
			return true;
		list += len + (list[len] == ',');
	}
	return false;
}

int request_check_params(const struct request *rq, const char *allowed, struct diag *diag)
{
	char hint[256];

	for (size_t i = 0; i < rq->nparams; i++) {
		const char *key = rq->params[i].key;

		if (!list_has(allowed, key)) {
			snprintf(hint, sizeof(hint), "%s%s",
				 *allowed ? "expected one of: " : "this request has no parameters",
				 allowed);
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint,
					"unknown parameter '%s'", key);
		}
		if (strcmp(key, "restrict") == 0 || strcmp(key, "where") == 0)
			continue;
		for (size_t j = 0; j < i; j++)
			if (strcmp(rq->params[j].key, key) == 0)
				return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
						"send each parameter once",
						"parameter '%s' is given twice", key);
	}
	return 0;
}

const char *request_get(const struct request *rq, const char *key)
{
	for (size_t i = 0; i < rq->nparams; i++)
		if (strcmp(rq->params[i].key, key) == 0)
			return rq->params[i].value;
	return NULL;
}

static int bad_value(struct diag *diag, const char *hint, const char *key, const char *value)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "%s: '%s' is not valid", key, value);
}

int request_get_pid(const struct request *rq, const char *key, pid_t *ret, struct diag *diag)
{
	const char *s = request_get(rq, key);

	if (!s || parse_pid(s, ret) == 0)
		return 0;
	return bad_value(diag, "expected a process or thread id", key, s);
}

int request_get_bool(const struct request *rq, const char *key, bool *ret, struct diag *diag)
{
	const char *s = request_get(rq, key);

	if (!s)
		return 0;
	if (strcmp(s, "true") == 0 || strcmp(s, "1") == 0)
		*ret = true;
	else if (strcmp(s, "false") == 0 || strcmp(s, "0") == 0)
		*ret = false;
	else
		return bad_value(diag, "expected true or false", key, s);
	return 0;
}
