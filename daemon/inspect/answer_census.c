// SPDX-License-Identifier: BSD-2-Clause
/* Encodes a census as an answer of the inspector, and checks it in the daemon: see answer.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8_clean.h"
#include "inspect/answer.h"

struct wire_census {
	uint64_t unconfirmed, other;
	uint32_t n, interpreters, lists, passes, torn, limited;
};

struct wire_type {
	uint64_t count, bytes;
	uint32_t len, pad; /* len: bytes of the name, which follows */
};

/* With these limits, sums cannot overflow. */
#define COUNT_MAX (UINT64_C(1) << 32)
#define BYTES_MAX (UINT64_C(1) << 47)

const size_t answer_census_max =
	sizeof(struct wire_census) +
	(size_t)CENSUS_TYPES_MAX * (sizeof(struct wire_type) + CENSUS_NAME_MAX);

char *answer_encode_census(const struct census *c, size_t *ret_size)
{
	const struct wire_census w = {
		.unconfirmed = c->unconfirmed,
		.other = c->other,
		.n = c->n,
		.interpreters = c->interpreters,
		.lists = c->lists,
		.passes = c->passes,
		.torn = c->torn,
		.limited = c->limited,
	};
	size_t size = sizeof(w), at = sizeof(w);
	char *out;

	for (uint32_t i = 0; i < c->n; i++)
		size += sizeof(struct wire_type) + strlen(c->types[i].name);
	out = malloc(size);
	if (!out)
		return NULL;
	memcpy(out, &w, sizeof(w));
	for (uint32_t i = 0; i < c->n; i++) {
		const struct wire_type t = {
			.count = c->types[i].count,
			.bytes = c->types[i].bytes,
			.len = (uint32_t)strlen(c->types[i].name),
		};

		memcpy(out + at, &t, sizeof(t));
		at += sizeof(t);
		memcpy(out + at, c->types[i].name, t.len);
		at += t.len;
	}
	*ret_size = size;
	return out;
}

/* Returns whether s is UTF-8 without control characters, n bytes long. */
static bool is_name(const char *s, size_t n)
{
	if (!n || strlen(s) != n)
		return false;
	while (*s) {
		size_t k = utf8_len(s);

		if (!k || (unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
		s += k;
	}
	return true;
}

static int take_type(const char **p, size_t *left, struct census_type *ret)
{
	struct wire_type t;

	if (*left < sizeof(t))
		return -EPROTO;
	memcpy(&t, *p, sizeof(t));
	*p += sizeof(t);
	*left -= sizeof(t);
	if (t.len > *left || t.len >= CENSUS_NAME_MAX || t.count > COUNT_MAX || t.bytes > BYTES_MAX)
		return -EPROTO;
	ret->name = malloc((size_t)t.len + 1);
	if (!ret->name)
		return -ENOMEM;
	memcpy(ret->name, *p, t.len);
	ret->name[t.len] = '\0';
	ret->count = t.count;
	ret->bytes = t.bytes;
	*p += t.len;
	*left -= t.len;
	return is_name(ret->name, t.len) ? 0 : -EPROTO;
}

int answer_decode_census(const void *data, size_t size, struct census *ret)
{
	_cleanup_(census_deinit) struct census c = {0};
	const char *p = data;
	struct wire_census w;
	int r = 0;

	if (size < sizeof(w))
		return -EPROTO;
	memcpy(&w, p, sizeof(w));
	p += sizeof(w);
	size -= sizeof(w);
	if (w.n > size / sizeof(struct wire_type) || w.n > CENSUS_TYPES_MAX || w.limited > 1 ||
	    w.torn > w.lists || w.other > COUNT_MAX || w.unconfirmed > COUNT_MAX)
		return -EPROTO;
	c.types = calloc((size_t)w.n + 1, sizeof(*c.types));
	if (!c.types)
		return -ENOMEM;
	while (c.n < w.n && r == 0) {
		struct census_type *t = &c.types[c.n++];

		r = take_type(&p, &size, t);
		c.objects += t->count;
		c.bytes += t->bytes;
	}
	if (r == 0 && size)
		r = -EPROTO;
	if (r < 0)
		return r;
	c.objects += w.other;
	c.other = w.other;
	c.unconfirmed = w.unconfirmed;
	c.interpreters = w.interpreters;
	c.lists = w.lists;
	c.passes = w.passes;
	c.torn = w.torn;
	c.limited = w.limited;
	*ret = c;
	memset(&c, 0, sizeof(c)); /* owned by the caller now */
	return 0;
}
