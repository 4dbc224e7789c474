// SPDX-License-Identifier: BSD-2-Clause
/*
 * Line tables: see lines.h. Sources: Objects/lnotab_notes.txt of 3.9 and 3.10, Objects/locations.md
 * of 3.11.
 */
#include "python/lines.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* The maximum size of a table in bytes. The largest one in the standard library is below 100 kB. */
#define TABLE_MAX (1u << 20)

#define PEP626_NO_LINE (-128)

/* Codes of the entries in location tables. */
#define LOCATION_ONE_LINE  10u /* 10 to 12: the line advances by 0 to 2 */
#define LOCATION_NO_COLUMN 13u
#define LOCATION_LONG	   14u
#define LOCATION_NONE	   15u

enum line_format lines_format(const struct layout *l)
{
	if (l->minor >= 11)
		return LINE_LOCATIONS;
	return l->minor == 10 ? LINE_PEP626 : LINE_LNOTAB;
}

static int32_t known(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (int32_t)line : LINE_UNKNOWN;
}

/*
 * co_lnotab: pairs of a byte increment and a line increment, which applies behind these bytes. The
 * last line has no end.
 */
static bool next_lnotab(const struct lines *ls, struct lines_run *r)
{
	if (r->end == INT64_MAX)
		return false;
	if (r->at)
		r->at_line += (int8_t)ls->table[r->at - 1];
	for (; r->at + 1 < ls->size; r->at += 2) {
		if (ls->table[r->at]) {
			r->end += ls->table[r->at];
			r->at += 2;
			r->line = known(r->at_line);
			return true;
		}
		r->at_line += (int8_t)ls->table[r->at + 1];
	}
	r->end = INT64_MAX;
	r->line = known(r->at_line);
	return true;
}

/* co_linetable of 3.10: pairs of a number of bytes and the line increment that applies to them. */
static bool next_pep626(const struct lines *ls, struct lines_run *r)
{
	int8_t delta;

	if (r->at + 1 >= ls->size)
		return false;
	delta = (int8_t)ls->table[r->at + 1];
	r->end += ls->table[r->at];
	r->at += 2;
	if (delta != PEP626_NO_LINE)
		r->at_line += delta;
	r->line = delta == PEP626_NO_LINE ? LINE_UNKNOWN : known(r->at_line);
	return true;
}

/* Reads a varint: six bits per byte, least significant first; bit 6 set: another byte follows. */
static bool take_varint(const struct lines *ls, size_t *at, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; *at < ls->size && shift < 60; shift += 6) {
		uint8_t byte = ls->table[(*at)++];

		v |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/* Reads a signed varint, with the sign in the lowest bit. */
static bool take_svarint(const struct lines *ls, size_t *at, int64_t *ret)
{
	uint64_t v;

	if (!take_varint(ls, at, &v))
		return false;
	*ret = v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
	return true;
}

/* Sets *ret to the line increment of an entry with this code; its bytes, if any, are at *at. */
static bool take_delta(const struct lines *ls, unsigned int code, size_t *at, int64_t *ret)
{
	*ret = 0;
	if (code == LOCATION_LONG || code == LOCATION_NO_COLUMN)
		return take_svarint(ls, at, ret);
	if (code >= LOCATION_ONE_LINE && code < LOCATION_NO_COLUMN)
		*ret = code - LOCATION_ONE_LINE;
	return true;
}

static bool next_location(const struct lines *ls, struct lines_run *r)
{
	unsigned int code;
	int64_t delta;
	uint8_t head;

	if (r->at >= ls->size)
		return false;
	head = ls->table[r->at++];
	code = head >> 3 & 15;
	/* Only the first byte of an entry has its highest bit set. */
	if (!(head & 0x80) || !take_delta(ls, code, &r->at, &delta)) {
		r->at = ls->size;
		return false;
	}
	r->at_line += delta;
	r->end += 2 * ((head & 7) + 1); /* the length is in code units of 2 bytes */
	r->line = code == LOCATION_NONE ? LINE_UNKNOWN : known(r->at_line);
	while (r->at < ls->size && !(ls->table[r->at] & 0x80))
		r->at++;
	return true;
}

struct lines_run lines_first(const struct lines *ls)
{
	return (struct lines_run){.at_line = ls->firstlineno};
}

bool lines_next(const struct lines *ls, struct lines_run *run)
{
	switch (ls->format) {
	case LINE_LNOTAB:
		return next_lnotab(ls, run);
	case LINE_PEP626:
		return next_pep626(ls, run);
	case LINE_LOCATIONS:
		return next_location(ls, run);
	}
	return false;
}

int32_t lines_find(const struct lines *ls, int64_t offset)
{
	struct lines_run run = lines_first(ls);

	if (offset < 0)
		return known(ls->firstlineno);
	while (lines_next(ls, &run))
		if (offset < run.end)
			return run.line;
	return LINE_UNKNOWN;
}

/* Adjacent runs of one line become one; empty ones are left out. */
static int add_run(struct code_lines *c, uint32_t *room, const struct lines_run *run)
{
	struct code_line_run *last = c->n ? &c->v[c->n - 1] : NULL;
	uint32_t end = run->end < CODE_LINES_NO_END ? (uint32_t)run->end : CODE_LINES_NO_END;

	if (end == (last ? last->end : 0))
		return 0;
	if (last && last->line == run->line) {
		last->end = end;
		return 0;
	}
	if (c->n == CODE_LINES_MAX)
		return -E2BIG;
	if (c->n == *room) {
		uint32_t want = *room ? 2 * *room : 32;
		struct code_line_run *v = reallocarray(c->v, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		c->v = v;
		*room = want;
	}
	c->v[c->n++] = (struct code_line_run){.end = end, .line = run->line};
	return 0;
}

int lines_expand(const struct lines *ls, struct code_lines *ret)
{
	_cleanup_(code_lines_deinit) struct code_lines c = {.firstlineno = ls->firstlineno};
	struct lines_run run = lines_first(ls);
	uint32_t room = 0;
	int r = 0;

	while (r == 0 && lines_next(ls, &run))
		r = add_run(&c, &room, &run);
	if (r < 0)
		return r;
	*ret = c;
	c.v = NULL;
	return 0;
}

int lines_read(const struct layout *l, const struct memory *mem, uint64_t code, struct lines *ret)
{
	const struct pyp_layout *b = &l->bpf;
	/* In all versions the pointer to the table follows the last name. */
	uint16_t last = b->code_qualname != LAYOUT_NONE ? b->code_qualname : b->code_name;
	struct lines ls = {.format = lines_format(l)};
	uint64_t bytes, size;
	uint32_t first;
	int err = memory_read_u32(mem, code + b->code_firstlineno, &first);

	if (!err)
		err = memory_read_u64(mem, code + last + 8, &bytes);
	/* The order of fields is ob_size, ob_shash, bytes. */
	if (!err)
		err = memory_read_u64(mem, bytes + l->bytes_data - 16, &size);
	if (err)
		return err;
	if (size > TABLE_MAX)
		return -E2BIG;
	ls.firstlineno = (int32_t)first;
	ls.size = size;
	ls.table = malloc(size + 1);
	if (!ls.table)
		return -ENOMEM;
	err = size ? memory_read(mem, bytes + l->bytes_data, ls.table, size) : 0;
	if (err) {
		lines_deinit(&ls);
		return err;
	}
	*ret = ls;
	return 0;
}

void lines_deinit(struct lines *ls)
{
	free(ls->table);
	*ls = (struct lines){0};
}

int64_t lines_offset(const struct layout *l, uint64_t code, uint64_t instr)
{
	if (l->minor >= 11)
		return (int64_t)(instr - code - l->bpf.code_start);
	return (int64_t)(int32_t)(uint32_t)instr * l->lasti_unit;
}
