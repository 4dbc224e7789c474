// SPDX-License-Identifier: BSD-2-Clause
/*
 * Local variables: see frame_locals.h and python_locals() in details.h. Up to 3.10 a frame has the
 * variables, then cells, then the closure's cells, and the code object has a tuple of names for
 * each (frameobject.c). From 3.11 on there is one tuple, with a byte per name that encodes which it
 * is (pycore_code.h).
 */
#include "python/frame_locals.h"

#include <errno.h>
#include <string.h>

#include "python/details.h"

#define SLOTS_MAX   4096u
#define MAX_READS   20000u
#define TAG_MASK    UINT64_C(3) /* of references in frames, from 3.14 on */
#define FAST_HIDDEN 0x10u	/* the variable of an inlined comprehension */
#define FAST_CELLS  0xc0u	/* CO_FAST_CELL, CO_FAST_FREE */

struct walk_locals {
	struct values *v;
	uint64_t slot; /* address of the next one */
	uint64_t kinds;
	unsigned int n;
	bool cells; /* up to 3.10: the slots hold cells */
	frame_local_fn fn;
	void *ctx;
};

uint64_t frame_code(struct values *v, uint64_t frame)
{
	return values_word(v, frame + v->l->bpf.frame_code) & ~(uint64_t)v->l->bpf.code_tag_mask;
}

static uint64_t cell_contents(struct values *v, uint64_t cell)
{
	struct value_class c;

	if (!values_class(v, cell, &c) || strcmp(c.name, "cell") != 0)
		return cell;
	return values_word(v, cell + v->head);
}

static bool take_slot(void *ctx, uint64_t key, uint64_t name)
{
	struct walk_locals *w = ctx;
	uint64_t value = values_word(w->v, w->slot);
	uint8_t kind = w->cells ? FAST_CELLS : 0;

	(void)key;
	if (w->kinds && values_read(w->v, w->kinds + w->n, &kind, 1))
		return false;
	if (w->v->l->minor >= 14)
		value &= ~TAG_MASK;
	if (value && kind & FAST_CELLS)
		value = cell_contents(w->v, value);
	w->slot += 8;
	if (kind & FAST_HIDDEN)
		value = 0;
	return ++w->n < SLOTS_MAX && w->fn(w->ctx, name, value);
}

/* Up to 3.10: offsets in the code object of the three tuples of names */
static bool each_by_tuples(struct values *v, uint64_t code, struct walk_locals *w)
{
	uint16_t first = v->l->minor < 8 ? 64 : 72;
	const uint16_t tuples[3] = {first, first + 16, first + 8}; /* variables, cells, closure */

	for (unsigned int i = 0; i < 3; i++) {
		w->cells = i > 0;
		if (!values_each(v, values_word(v, code + tuples[i]), take_slot, w))
			return false;
	}
	return true;
}

bool frame_locals_each(struct values *v, uint64_t frame, frame_local_fn fn, void *ctx)
{
	struct walk_locals w = {
		.v = v, .slot = frame + v->l->frame_localsplus, .fn = fn, .ctx = ctx};
	uint64_t code = frame_code(v, frame), shift = v->head - 16u;

	if (!code)
		return false;
	if (v->l->minor < 11)
		return each_by_tuples(v, code, &w);
	w.kinds = values_word(v, code + shift + 104) + v->l->bytes_data;
	return values_each(v, values_word(v, code + shift + 96), take_slot, &w);
}

struct wanted_local {
	struct values *v;
	const char *name;
	uint64_t value;
};

static bool is_wanted(void *ctx, uint64_t name, uint64_t value)
{
	struct wanted_local *w = ctx;

	if (!value || !values_equal(w->v, name, w->name))
		return true;
	w->value = value;
	return false;
}

uint64_t frame_locals_get(struct values *v, uint64_t frame, const char *name)
{
	struct wanted_local w = {v, name, 0};

	(void)frame_locals_each(v, frame, is_wanted, &w);
	return w.value;
}

/* ---- python_locals ----------------------------------------------------------------------- */

struct reading_locals {
	struct values *v;
	struct python_locals *locals;
};

static bool take_local(void *ctx, uint64_t name, uint64_t value)
{
	struct reading_locals *r = ctx;
	struct python_locals *l = r->locals;
	struct python_local *to;

	if (!value)
		return true;
	if (l->n == PYTHON_LOCALS_MAX) {
		l->more++;
		return true;
	}
	to = &l->v[l->n];
	to->name = values_str(r->v, name, PYTHON_NAME_MAX);
	if (!to->name)
		return true;
	values_repr(r->v, value, to->value, sizeof(to->value));
	l->n++;
	return true;
}

int python_locals(const struct python *py, const struct memory *mem, uint64_t frame,
		  struct python_locals *ret)
{
	_cleanup_(values_freep) struct values *v = values_new(py, mem, MAX_READS);
	struct python_locals l = {.frame = frame};
	struct reading_locals r = {.v = v, .locals = &l};

	l.v = v ? calloc(PYTHON_LOCALS_MAX, sizeof(*l.v)) : NULL;
	if (!l.v)
		return -ENOMEM;
	l.code = frame_code(v, frame);
	if (!l.code || !frame_locals_each(v, frame, take_local, &r)) {
		python_locals_deinit(&l);
		return -EFAULT;
	}
	*ret = l;
	return 0;
}

void python_locals_deinit(struct python_locals *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].name);
	free(l->v);
	*l = (struct python_locals){0};
}
