// SPDX-License-Identifier: BSD-2-Clause
/*
 * Encodes the inspector's answers, and checks them in the daemon: see answer.h. The answer to
 * QUESTION_FIND is in answer_find.c.
 */
#include "inspect/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/utf8_clean.h"
#include "inspect/field.h"

#define STACKS_MAX     (64u << 20)
#define DETAILS_MAX    (64u << 20)
#define CODE_MAX       (3u * 4 * 65536 + 64)
#define NAME_MAX_BYTES (4u * 65536) /* python_str_read()'s limit, as UTF-8 */
#define NO_NAME	       UINT32_MAX
#define PAGE	       4096u

struct wire_stack {
	uint64_t tstate;
	int32_t tid;
	uint32_t n, truncated, stable;
	uint32_t lines; /* boolean: line numbers follow the frames */
	uint32_t pad;
};

struct wire_code {
	int32_t firstlineno;
	uint32_t flags;
	uint32_t len[3];
};

struct wire_lines {
	int32_t firstlineno;
	uint32_t n; /* runs that follow */
};

struct wire_hidden {
	uint32_t misses;
	char text[256];
};

size_t answer_max(enum question q)
{
	switch (q) {
	case QUESTION_FIND:
		return answer_find_max;
	case QUESTION_STACKS:
	case QUESTION_DUMP:
		return STACKS_MAX;
	case QUESTION_CODE:
		return CODE_MAX;
	case QUESTION_HIDDEN:
		return sizeof(struct wire_hidden);
	case QUESTION_EXEC_ID:
		return sizeof(uint64_t);
	case QUESTION_GILS:
		return sizeof(struct pyp_gil_range) * PYP_GIL_RANGES;
	case QUESTION_LINES:
		return sizeof(struct wire_lines) + CODE_LINES_MAX * sizeof(struct code_line_run);
	case QUESTION_CENSUS:
		return answer_census_max;
	case QUESTION_NAMES:
	case QUESTION_LOCALS:
	case QUESTION_TASKS:
	case QUESTION_GREENLETS:
		return DETAILS_MAX;
	case QUESTIONS:
		break;
	}
	return 0;
}

/* ---- stacks ------------------------------------------------------------------------------ */

/* Returns the number of bytes that follow a stack's header. */
static size_t frames_size(size_t n, bool lines)
{
	return n * (sizeof(struct pyp_chain_frame) + (lines ? sizeof(int32_t) : 0));
}

static char *put_stack(char *to, const struct python_stack *st)
{
	const struct wire_stack w = {
		.tstate = st->tstate,
		.tid = st->tid,
		.n = (uint32_t)st->n,
		.truncated = st->truncated,
		.stable = (uint32_t)st->stable,
		.lines = st->lines != NULL,
	};
	size_t n = st->n;

	memcpy(to, &w, sizeof(w));
	to += sizeof(w);
	if (n)
		memcpy(to, st->frames, n * sizeof(*st->frames));
	if (n && st->lines)
		memcpy(to + n * sizeof(*st->frames), st->lines, n * sizeof(*st->lines));
	return to + frames_size(n, st->lines);
}

char *answer_encode_stacks(const struct python_stack *v, size_t n, size_t *ret_size)
{
	size_t size = 0, whole = 0;
	char *out, *to;

	for (; whole < n; whole++) {
		size_t one = sizeof(struct wire_stack) + frames_size(v[whole].n, v[whole].lines);

		if (size + one > STACKS_MAX)
			break;
		size += one;
	}
	out = to = malloc(size ? size : 1);
	for (size_t i = 0; out && i < whole; i++)
		to = put_stack(to, &v[i]);
	*ret_size = size;
	return out;
}

/* Returns the number of stacks, or -EPROTO. */
static ssize_t count_stacks(const char *p, size_t size)
{
	ssize_t n = 0;

	while (size) {
		struct wire_stack w;

		if (size < sizeof(w) || n == TARGET_MAX_THREADS)
			return -EPROTO;
		memcpy(&w, p, sizeof(w));
		p += sizeof(w);
		size -= sizeof(w);
		if (w.n > PYP_CHAIN_MAX_DEPTH || w.truncated > 1 || w.lines > 1 || w.tid < 0 ||
		    w.stable > w.n || frames_size(w.n, w.lines) > size)
			return -EPROTO;
		p += frames_size(w.n, w.lines);
		size -= frames_size(w.n, w.lines);
		n++;
	}
	return n;
}

static void *copy_of(const void *data, size_t size)
{
	void *p = size ? malloc(size) : NULL;

	if (p)
		memcpy(p, data, size);
	return p;
}

/* Reads the stack at p, which count_stacks has checked. Leaves out its frames if out of memory. */
static const char *take_stack(const char *p, struct python_stack *ret)
{
	struct wire_stack w;
	size_t bytes;

	memcpy(&w, p, sizeof(w));
	p += sizeof(w);
	bytes = w.n * sizeof(*ret->frames);
	*ret = (struct python_stack){
		.tid = w.tid, .tstate = w.tstate, .truncated = w.truncated, .stable = w.stable};
	ret->frames = copy_of(p, bytes);
	ret->lines = w.lines ? copy_of(p + bytes, w.n * sizeof(*ret->lines)) : NULL;
	ret->n = ret->frames && (ret->lines || !w.lines) ? w.n : 0;
	return p + frames_size(w.n, w.lines);
}

int answer_decode_stacks(const void *data, size_t size, struct python_stack **ret, size_t *ret_n)
{
	const char *p = data;
	ssize_t n = count_stacks(p, size);
	struct python_stack *v;

	if (n < 0)
		return (int)n;
	v = calloc((size_t)n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (ssize_t i = 0; i < n; i++)
		p = take_stack(p, &v[i]);
	*ret = v;
	*ret_n = (size_t)n;
	return 0;
}

/* ---- names ------------------------------------------------------------------------------- */

char *answer_encode_code(const struct code_names *c, size_t *ret_size)
{
	const char *const text[3] = {c->filename, c->name, c->qualname};
	struct wire_code w = {.firstlineno = c->firstlineno, .flags = c->flags};
	size_t size = sizeof(w), at = sizeof(w);
	char *out;

	for (int i = 0; i < 3; i++) {
		w.len[i] = text[i] ? (uint32_t)strlen(text[i]) : NO_NAME;
		size += text[i] ? w.len[i] : 0;
	}
	out = malloc(size);
	if (!out)
		return NULL;
	memcpy(out, &w, sizeof(w));
	for (int i = 0; i < 3; i++) {
		if (!text[i])
			continue;
		memcpy(out + at, text[i], w.len[i]);
		at += w.len[i];
	}
	*ret_size = size;
	return out;
}

bool answer_is_text(const char *s, size_t n)
{
	if (strlen(s) != n)
		return false;
	while (*s) {
		size_t k = utf8_len(s);

		if (!k)
			return false;
		s += k;
	}
	return true;
}

static int take_name(const char **p, size_t *left, uint32_t len, char **ret)
{
	if (len == NO_NAME)
		return 0;
	if (len > NAME_MAX_BYTES || len > *left)
		return -EPROTO;
	*ret = malloc((size_t)len + 1);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, *p, len);
	(*ret)[len] = '\0';
	*p += len;
	*left -= len;
	return answer_is_text(*ret, len) ? 0 : -EPROTO;
}

int answer_decode_code(const void *data, size_t size, struct code_names *ret)
{
	_cleanup_(code_names_deinit) struct code_names c = {0};
	char **const text[3] = {&c.filename, &c.name, &c.qualname};
	const char *p = data;
	struct wire_code w;
	int r = 0;

	if (size < sizeof(w))
		return -EPROTO;
	memcpy(&w, p, sizeof(w));
	p += sizeof(w);
	size -= sizeof(w);
	for (int i = 0; i < 3 && r == 0; i++)
		r = take_name(&p, &size, w.len[i], text[i]);
	if (r == 0 && (size || !c.filename || !c.name))
		r = -EPROTO;
	if (r < 0)
		return r;
	c.firstlineno = w.firstlineno;
	c.flags = w.flags;
	*ret = c;
	memset(&c, 0, sizeof(c)); /* owned by the caller now */
	return 0;
}

/* ---- lines ------------------------------------------------------------------------------- */

char *answer_encode_lines(const struct code_lines *c, size_t *ret_size)
{
	const struct wire_lines w = {.firstlineno = c->firstlineno, .n = c->n};
	size_t size = sizeof(w) + c->n * sizeof(*c->v);
	char *out = malloc(size);

	if (!out)
		return NULL;
	memcpy(out, &w, sizeof(w));
	if (c->n)
		memcpy(out + sizeof(w), c->v, c->n * sizeof(*c->v));
	*ret_size = size;
	return out;
}

static bool runs_are_possible(const struct code_line_run *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i].line < 0 || v[i].end <= (i ? v[i - 1].end : 0))
			return false;
	return true;
}

int answer_decode_lines(const void *data, size_t size, struct code_lines *ret)
{
	_cleanup_(code_lines_deinit) struct code_lines c = {0};
	struct wire_lines w;

	if (size < sizeof(w))
		return -EPROTO;
	memcpy(&w, data, sizeof(w));
	if (w.n > CODE_LINES_MAX || size - sizeof(w) != w.n * sizeof(*c.v))
		return -EPROTO;
	c = (struct code_lines){.firstlineno = w.firstlineno, .n = w.n};
	c.v = malloc(w.n * sizeof(*c.v) + 1);
	if (!c.v)
		return -ENOMEM;
	memcpy(c.v, (const char *)data + sizeof(w), w.n * sizeof(*c.v));
	if (!runs_are_possible(c.v, c.n))
		return -EPROTO;
	*ret = c;
	c.v = NULL; /* owned by the caller now */
	return 0;
}

/* ---- hidden calls ------------------------------------------------------------------------ */

char *answer_encode_hidden(bool misses, const char *text, size_t *ret_size)
{
	struct wire_hidden *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->misses = misses;
	FIELD_PUT(w->text, text);
	*ret_size = sizeof(*w);
	return (char *)w;
}

int answer_decode_hidden(const void *data, size_t size, bool *misses, char *out, size_t out_size)
{
	struct wire_hidden w;

	if (size != sizeof(w))
		return -EPROTO;
	memcpy(&w, data, sizeof(w));
	if (w.misses > 1 || !field_take(out, out_size, w.text, sizeof(w.text)))
		return -EPROTO;
	*misses = w.misses;
	return 0;
}

/* ---- GILs -------------------------------------------------------------------------------- */

int answer_decode_gils(const void *data, size_t size, struct pyp_gil_range out[PYP_GIL_RANGES])
{
	struct pyp_gil_range v[PYP_GIL_RANGES] = {0};
	size_t n = size / sizeof(*v);

	if (size % sizeof(*v) || n > PYP_GIL_RANGES)
		return -EPROTO;
	if (n)
		memcpy(v, data, size);
	for (size_t i = 0; i < n; i++)
		if (!v[i].start || !field_is_address(v[i].start) || !v[i].size ||
		    v[i].size > PAGE || v[i].gil >= PYP_GIL_RANGES)
			return -EPROTO;
	memcpy(out, v, sizeof(v));
	return (int)n;
}
