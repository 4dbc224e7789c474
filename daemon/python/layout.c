// SPDX-License-Identifier: BSD-2-Clause
/* Finding a layout, and values derived from it: see layout.h. */
#include "python/layout.h"

#include <stddef.h>
#include <stdio.h>

const struct layout *layout_find_abi(unsigned int major, unsigned int minor, unsigned int abi)
{
	for (const struct layout *const *l = layout_tables; *l; l++)
		if ((*l)->major == major && (*l)->minor == minor && (*l)->abi == abi)
			return *l;
	return NULL;
}

const struct layout *layout_find(unsigned int major, unsigned int minor)
{
	return layout_find_abi(major, minor, 0);
}

static void add_op(struct pyp_waiting *w, unsigned int *n, int16_t op)
{
	if (op != LAYOUT_NO_OPCODE && *n < PYP_WAITING_OPS)
		w->op[(*n)++] = (uint8_t)op;
}

/*
 * ARENA_BITS and POOL_SIZE (3.10 Objects/obmalloc.c, since then larger; 3.12 and later
 * Include/internal/pycore_obmalloc.h). Free-threaded builds use mimalloc.
 */
struct pyp_arenas layout_arenas(const struct layout *l)
{
	if (l->abi & LAYOUT_ABI_FREE_THREADED)
		return (struct pyp_arenas){0};
	return l->minor >= 10 ? (struct pyp_arenas){.arena_bits = 20, .pool_size = 16384}
			      : (struct pyp_arenas){.arena_bits = 18, .pool_size = 4096};
}

struct pyp_waiting layout_waiting(const struct layout *l)
{
	struct pyp_waiting w = {.style = l->waiting_style, .frame_instr = l->bpf.frame_instr};
	unsigned int n = 0;

	if (w.style == PYP_WAITING_NONE)
		return w;
	w.least_arg = l->resume_delegates;
	if (w.style == PYP_WAITING_INDEX) {
		w.index_unit = l->lasti_unit;
		w.code_bytes = l->code_bytes;
		w.bytes_data = l->bytes_data;
	}
	add_op(&w, &n, l->op.yield_from);
	add_op(&w, &n, l->op.resume);
	add_op(&w, &n, l->op.resume_quick);
	add_op(&w, &n, l->op.resume_check);
	add_op(&w, &n, l->op.resume_check_jit);
	add_op(&w, &n, l->op.instrumented_resume);
	return w;
}

/*
 * Opcodes from here on (3.12 and later) stand for another one that is found elsewhere, such as
 * INSTRUMENTED_LINE while a debugger traces lines: any of them may be a return.
 */
#define HIDING_FIRST 250

static void add_end(struct pyp_raising *r, int16_t op)
{
	if (op != LAYOUT_NO_OPCODE)
		r->ends[(uint8_t)op / 64] |= UINT64_C(1) << (uint8_t)op % 64;
}

struct pyp_raising layout_raising(const struct layout *l)
{
	struct pyp_raising r = {
		.index_unit = l->lasti_unit,
		.code_bytes = l->code_bytes,
		.bytes_data = l->bytes_data,
		.yield_from = l->op.yield_from == LAYOUT_NO_OPCODE ? 0 : (uint8_t)l->op.yield_from,
	};

	add_end(&r, l->op.return_value);
	add_end(&r, l->op.return_const);
	add_end(&r, l->op.instrumented_return_value);
	add_end(&r, l->op.instrumented_return_const);
	add_end(&r, l->op.yield_value);
	add_end(&r, l->op.instrumented_yield_value);
	for (int16_t op = HIDING_FIRST; op < 256; op++)
		add_end(&r, op);
	return r;
}

bool layout_distinguishes_raising(const struct layout *l)
{
	return l->major > 3 || l->minor >= 8;
}

struct pyp_restart layout_restart(const struct layout *l)
{
	return (struct pyp_restart){
		.code_version = l->code_version,
		.interp_version = l->interp_version,
	};
}

static void add_calls(struct pyp_native_calls *c, const uint8_t *ops, size_t n, unsigned int where)
{
	for (size_t i = 0; i < n && ops[i]; i++)
		c->op[ops[i]] = (uint8_t)(PYP_CALL | where);
}

#define ADD_CALLS(c, list, where) add_calls((c), (list), sizeof(list), (where))

struct pyp_native_calls layout_native_calls(const struct layout *l, bool remember)
{
	const struct layout_calls *calls = &l->calls;
	const unsigned int args = PYP_CALL_ARGS;
	struct pyp_native_calls c = {
		.on = 1,
		.remember = remember && !l->frame_stack,
		.index_unit = l->lasti_unit,
		.frame_stack = l->frame_stack,
		.code_bytes = l->code_bytes,
		.bytes_data = l->bytes_data,
	};

	/* Above the callable: its object or NULL, the arguments, and the variants in `keywords` and
	 * `unpacked`. */
	ADD_CALLS(&c, calls->generic, args | 2);
	ADD_CALLS(&c, calls->function, args | 2);
	ADD_CALLS(&c, calls->descriptor, args | 2);
	ADD_CALLS(&c, calls->cached, args | 2);
	add_calls(&c, &calls->append, 1, args | 2);
	ADD_CALLS(&c, calls->keywords, args | 3);
	ADD_CALLS(&c, calls->unpacked, 4);
	return c;
}

const char *layout_proven_range(char *out, size_t size)
{
	const struct layout *first = NULL, *last = NULL;

	for (const struct layout *const *l = layout_tables; *l; l++) {
		if (!(*l)->proven)
			continue;
		first = first ? first : *l;
		last = *l;
	}
	if (first)
		snprintf(out, size, "%u.%u-%u.%u", first->major, first->minor, last->major,
			 last->minor);
	else
		snprintf(out, size, "no version");
	return out;
}
