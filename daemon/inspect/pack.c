// SPDX-License-Identifier: BSD-2-Clause
/* Sequences of numbers and texts: see pack.h. */
#include "inspect/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "inspect/answer.h"
#include "inspect/field.h"

#define NO_TEXT UINT64_MAX

static void put(struct pack *p, const void *data, size_t n)
{
	if (p->failed)
		return;
	if (p->n + n > p->room) {
		size_t room = 2 * (p->n + n) + 256;
		char *more = realloc(p->data, room);

		if (!more) {
			p->failed = true;
			return;
		}
		p->data = more;
		p->room = room;
	}
	if (n)
		memcpy(p->data + p->n, data, n);
	p->n += n;
}

void pack_number(struct pack *p, uint64_t v)
{
	put(p, &v, sizeof(v));
}

void pack_text(struct pack *p, const char *text)
{
	size_t n = text ? strlen(text) : 0;

	pack_number(p, text ? n : NO_TEXT);
	put(p, text, n);
}

char *pack_take(struct pack *p, size_t *ret_size)
{
	if (p->failed) {
		free(p->data);
		return NULL;
	}
	*ret_size = p->n;
	return p->data;
}

uint64_t unpack_number(struct unpack *u)
{
	uint64_t v;

	if (u->err || u->left < sizeof(v)) {
		u->err = u->err ? u->err : -EPROTO;
		return 0;
	}
	memcpy(&v, u->at, sizeof(v));
	u->at += sizeof(v);
	u->left -= sizeof(v);
	return v;
}

uint64_t unpack_up_to(struct unpack *u, uint64_t max)
{
	uint64_t v = unpack_number(u);

	if (v > max) {
		u->err = -EPROTO;
		return 0;
	}
	return v;
}

uint64_t unpack_address(struct unpack *u)
{
	return unpack_up_to(u, FIELD_ADDRESS_END - 1);
}

char *unpack_text(struct unpack *u, size_t max)
{
	uint64_t n = unpack_number(u);
	char *text;

	if (u->err || n == NO_TEXT)
		return NULL;
	if (n > max || n > u->left) {
		u->err = -EPROTO;
		return NULL;
	}
	text = malloc(n + 1);
	if (!text) {
		u->err = -ENOMEM;
		return NULL;
	}
	memcpy(text, u->at, n);
	text[n] = '\0';
	u->at += n;
	u->left -= n;
	if (answer_is_text(text, n))
		return text;
	free(text);
	u->err = -EPROTO;
	return NULL;
}

void unpack_field(struct unpack *u, char *out, size_t size)
{
	_cleanup_free_ char *text = unpack_text(u, size - 1);

	if (!text && !u->err)
		u->err = -EPROTO;
	field_put(out, size, text ? text : "");
}

int unpack_end(const struct unpack *u)
{
	return u->err ? u->err : u->left ? -EPROTO : 0;
}
