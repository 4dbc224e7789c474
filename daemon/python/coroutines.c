// SPDX-License-Identifier: BSD-2-Clause
/*
 * Suspended coroutines: see coroutines.h. A frame that is suspended in `await` or `yield from` has
 * the awaited object on top of its stack, and continues with YIELD_FROM (up to 3.10) or with a
 * RESUME whose argument marks it (Objects/genobject.c, _PyGen_yf).
 */
#include "python/coroutines.h"

#include <string.h>

#define FRAME_VALUESTACK 64u /* up to 3.10: f_valuestack */
#define FRAME_STACKTOP	 72u /* up to 3.9: f_stacktop; NULL while it runs */
#define FRAME_STACKDEPTH 80u /* 3.10: f_stackdepth */
#define FRAME_TOP	 64u /* 3.11 to 3.13: stacktop, an int */
#define STACK_MAX	 65536
#define TAG_MASK	 UINT64_C(3)

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

uint64_t coroutine_frame(struct values *v, uint64_t object)
{
	static const char *const names[] = {"coroutine", "generator", "async_generator", NULL};
	struct value_class c;

	if (!values_class(v, object, &c) || !is_one_of(c.name, names))
		return 0;
	if (v->l->minor < 11)
		return values_word(v, object + v->l->gen_frame);
	return object + v->l->gen_frame;
}

/* Returns the address of the instruction with which a frame continues. */
static uint64_t next_instruction(struct values *v, uint64_t frame)
{
	uint64_t word = values_word(v, frame + v->l->bpf.frame_instr);
	uint64_t code = values_word(v, frame + v->l->bpf.frame_code);
	int32_t index = (int32_t)word;

	if (v->l->minor >= 13)
		return word;
	if (v->l->minor >= 11)
		return word + 2;
	if (index < 0)
		return 0;
	return values_word(v, code + v->l->code_bytes) + v->l->bytes_data +
	       (uint64_t)index * v->l->lasti_unit + 2;
}

/* Returns whether the frame is suspended in `await` or `yield from`. */
static bool is_waiting(struct values *v, uint64_t frame)
{
	const struct layout_opcodes *op = &v->l->op;
	const int16_t resume[] = {op->resume, op->resume_quick, op->resume_check,
				  op->resume_check_jit, op->instrumented_resume};
	uint64_t at = next_instruction(v, frame);
	uint8_t unit[2];

	if (!at || values_read(v, at, unit, sizeof(unit)))
		return false;
	if (v->l->minor < 11)
		return unit[0] == op->yield_from;
	for (size_t i = 0; i < sizeof(resume) / sizeof(*resume); i++)
		if (unit[0] == resume[i] && (unit[1] & 3) >= v->l->resume_delegates)
			return true;
	return false;
}

/* Returns the address behind the topmost entry of a frame's stack; 0: unknown. */
static uint64_t stack_end(struct values *v, uint64_t frame)
{
	uint64_t word;

	if (v->l->minor >= 14)
		return values_word(v, frame + v->l->frame_stack);
	if (v->l->minor < 10)
		return values_word(v, frame + FRAME_STACKTOP);
	word = values_word(v, frame + (v->l->minor == 10 ? FRAME_STACKDEPTH : FRAME_TOP));
	if ((int32_t)word <= 0 || (int32_t)word > STACK_MAX)
		return 0;
	return (uint64_t)(int32_t)word * 8 + (v->l->minor == 10
						      ? values_word(v, frame + FRAME_VALUESTACK)
						      : frame + v->l->frame_localsplus);
}

uint64_t coroutine_awaits(struct values *v, uint64_t frame)
{
	uint64_t end = is_waiting(v, frame) ? stack_end(v, frame) : 0;
	struct value_class c;

	/* 3.15 may have another word above the object. */
	for (unsigned int i = 1; end && i <= (v->l->minor >= 15 ? 2u : 1u); i++) {
		uint64_t object = values_word(v, end - 8u * i);

		if (v->l->minor >= 14)
			object &= ~TAG_MASK;
		if (object && values_class(v, object, &c) && strcmp(c.name, "NoneType") != 0)
			return object;
	}
	return 0;
}

uint64_t coroutine_inner(struct values *v, uint64_t object)
{
	static const char *const names[] = {"async_generator_asend", "async_generator_athrow",
					    "coroutine_wrapper",     "anext_awaitable",
					    "_asyncio.FutureIter",   NULL};
	struct value_class c;

	if (!values_class(v, object, &c) || !is_one_of(c.name, names))
		return 0;
	return values_word(v, object + v->head);
}
