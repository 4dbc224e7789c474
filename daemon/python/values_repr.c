// SPDX-License-Identifier: BSD-2-Clause
/* Short representations of values: see values_repr() in values.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/values.h"

#define CHARS_MAX 40u /* of a str, bytes of a bytes */

static void repr_int(struct values *v, uint64_t object, char *out, size_t size)
{
	char digits[48];
	size_t at = sizeof(digits);
	struct wide_int w;
	int r = values_wide_int(v, object, &w);

	if (r < 0) {
		if (r == -E2BIG)
			snprintf(out, size, "<int of up to %" PRIu64 " bits>", w.bits);
		else
			snprintf(out, size, "?");
		return;
	}
	digits[--at] = '\0';
	do
		digits[--at] = (char)('0' + (int)(w.magnitude % 10));
	while (w.magnitude /= 10);
	snprintf(out, size, "%s%s", w.negative ? "-" : "", digits + at);
}

static const char *repr_bool(struct values *v, uint64_t object)
{
	struct wide_int w;

	return values_wide_int(v, object, &w) < 0 ? "?" : w.magnitude ? "True" : "False";
}

/* The shortest text that gives the same number. */
static void repr_float(struct values *v, uint64_t object, char *out, size_t size)
{
	char text[40];
	double d;

	if (values_read(v, object + v->head, &d, sizeof(d))) {
		snprintf(out, size, "?");
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	snprintf(out, size, "%s%s", text, isfinite(d) && !strpbrk(text, ".e") ? ".0" : "");
}

/* Appends to out, which holds *at of size bytes. */
static void put(char *out, size_t size, size_t *at, const char *text)
{
	size_t n = strlen(text);

	if (*at + n >= size)
		return;
	memcpy(out + *at, text, n + 1);
	*at += n;
}

static void put_byte(char *out, size_t size, size_t *at, unsigned char c)
{
	static const char *const named[256] = {
		['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t", ['\\'] = "\\\\", ['\''] = "\\'"};
	char text[8];

	if (named[c])
		snprintf(text, sizeof(text), "%s", named[c]);
	else
		snprintf(text, sizeof(text), c < 0x20 || c >= 0x7f ? "\\x%02x" : "%c", c);
	put(out, size, at, text);
}

static void repr_str(struct values *v, uint64_t object, char *out, size_t size)
{
	_cleanup_free_ char *text = NULL;
	uint64_t length;
	size_t at = 0;

	if (python_str_start(v->l, &v->mem, object, CHARS_MAX, &text, &length) < 0) {
		snprintf(out, size, "?");
		return;
	}
	put(out, size, &at, "'");
	for (const char *p = text; *p; p++) {
		const char whole[2] = {*p, '\0'};

		if ((unsigned char)*p >= 0x80)
			put(out, size, &at, whole);
		else
			put_byte(out, size, &at, (unsigned char)*p);
	}
	put(out, size, &at, "'");
	if (length > CHARS_MAX)
		put(out, size, &at, "...");
}

static void repr_bytes(struct values *v, uint64_t object, char *out, size_t size)
{
	uint64_t length = values_word(v, object + v->head);
	size_t n = length < CHARS_MAX ? (size_t)length : CHARS_MAX, at = 0;
	uint8_t data[CHARS_MAX];

	if (length > INT64_MAX || values_read(v, object + v->l->bytes_data, data, n)) {
		snprintf(out, size, "?");
		return;
	}
	put(out, size, &at, "b'");
	for (size_t i = 0; i < n; i++)
		put_byte(out, size, &at, data[i]);
	put(out, size, &at, length > CHARS_MAX ? "'..." : "'");
}

static void repr_other(struct values *v, uint64_t object, const struct value_class *c, char *out,
		       size_t size)
{
	uint64_t n;

	if (c->flags & (VALUE_LIST | VALUE_TUPLE))
		n = values_word(v, object + v->head); /* ob_size */
	else if (c->flags & VALUE_DICT)
		n = values_word(v, object + v->head); /* ma_used */
	else if (values_is_a(v, c, "set") || values_is_a(v, c, "frozenset"))
		n = values_word(v, object + v->head + 8);
	else
		n = UINT64_MAX;
	if (n > INT64_MAX)
		snprintf(out, size, "<%s>", c->name);
	else
		snprintf(out, size, "<%s of %" PRIu64 ">", c->name, n);
}

void values_repr(struct values *v, uint64_t object, char *out, size_t size)
{
	struct value_class c;

	if (!values_class(v, object, &c))
		snprintf(out, size, "?");
	else if (strcmp(c.name, "int") == 0)
		repr_int(v, object, out, size);
	else if (strcmp(c.name, "bool") == 0)
		snprintf(out, size, "%s", repr_bool(v, object));
	else if (strcmp(c.name, "NoneType") == 0)
		snprintf(out, size, "None");
	else if (strcmp(c.name, "float") == 0)
		repr_float(v, object, out, size);
	else if (strcmp(c.name, "str") == 0)
		repr_str(v, object, out, size);
	else if (strcmp(c.name, "bytes") == 0)
		repr_bytes(v, object, out, size);
	else
		repr_other(v, object, &c, out, size);
}
