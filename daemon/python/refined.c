// SPDX-License-Identifier: BSD-2-Clause
/* Offsets of a layout that a build may refine (see confirm.c), as plain numbers: see python.h. */
#include <errno.h>
#include <string.h>

#include "python/inside.h"

#define DEBUG_OFFSETS_MINOR 13
#define FRAME_BLOCK	    32

static const struct refined_field {
	uint16_t at; /* in struct layout */
	uint8_t align;
} fields[PYTHON_REFINED] = {
	{offsetof(struct layout, interp_eval_frame), 8}, /* the only one before 3.13 */
	{offsetof(struct layout, runtime_interpreters_head), 8},
	{offsetof(struct layout, interp_next), 8},
	{offsetof(struct layout, interp_threads_head), 8},
	{offsetof(struct layout, ts_next), 8},
	{offsetof(struct layout, ts_interp), 8},
	{offsetof(struct layout, ts_frame), 8},
	{offsetof(struct layout, ts_thread_id), 8},
	{offsetof(struct layout, ts_native_thread_id), 8},
	{offsetof(struct layout, bpf.frame_previous), 8},
	{offsetof(struct layout, bpf.frame_code), 8},
	{offsetof(struct layout, bpf.frame_instr), 8},
	{offsetof(struct layout, frame_localsplus), 8},
	{offsetof(struct layout, bpf.frame_owner), 1},
	{offsetof(struct layout, interp_modules), 8},
};

static uint16_t *field_of(struct layout *l, size_t i)
{
	return (uint16_t *)((char *)l + fields[i].at);
}

void python_refined_get(const struct layout *l, uint16_t out[PYTHON_REFINED])
{
	struct layout copy = *l;

	for (size_t i = 0; i < PYTHON_REFINED; i++)
		out[i] = *field_of(&copy, i);
}

/* frame_block covers both fields, as the BPF programs read them at once. */
static int place_block(struct pyp_layout *b)
{
	uint16_t lo = b->frame_code < b->frame_previous ? b->frame_code : b->frame_previous;
	uint16_t hi = b->frame_code < b->frame_previous ? b->frame_previous : b->frame_code;

	if (hi + 8 - lo > FRAME_BLOCK)
		return -EINVAL;
	b->frame_block = lo;
	return 0;
}

int python_refined_set(struct layout *l, const uint16_t in[PYTHON_REFINED])
{
	struct layout copy = *l;
	size_t n = l->minor < DEBUG_OFFSETS_MINOR ? 1 : PYTHON_REFINED;

	for (size_t i = 0; i < PYTHON_REFINED; i++) {
		uint16_t *field = field_of(&copy, i);

		if (in[i] == *field)
			continue;
		if (i >= n || *field == LAYOUT_NONE || in[i] == LAYOUT_NONE ||
		    in[i] % fields[i].align)
			return -EINVAL;
		*field = in[i];
	}
	if (n > 1 && place_block(&copy.bpf) < 0)
		return -EINVAL;
	*l = copy;
	return 0;
}
