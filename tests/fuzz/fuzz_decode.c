// SPDX-License-Identifier: BSD-2-Clause
/* event/decode with arbitrary bytes: it must not read past the end, and accepted values must be in
 * their ranges. The input is one record, or a series of records, each after a length byte. */
#include <stdlib.h>
#include <string.h>

#include "event/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

/* Read everything that the event points to: the buffer ends where the record ends. */
static unsigned int touch(const struct event *ev, const uint8_t *end)
{
	unsigned int sum = 0;

	check(ev->type >= 1 && ev->type < PYP_REC_MAX && ev->site < PYP_ALL_SITES);
	if (ev->type == PYP_REC_STRING) {
		check(ev->u.string.data + ev->u.string.bytes <= end);
		check(ev->u.string.which <= PYP_STR_QUALNAME);
		for (uint32_t i = 0; i < ev->u.string.bytes; i++)
			sum += ev->u.string.data[i];
	}
	if (ev->type == PYP_REC_CHAIN) {
		check(ev->u.chain.count <= PYP_CHAIN_FRAMES);
		for (uint32_t i = 0; i < ev->u.chain.count; i++)
			sum += ev->u.chain.frames[i].frame != 0;
	}
	if (ev->type == PYP_REC_SAMPLE) {
		check(ev->u.sample.count <= PYP_SAMPLE_CODES);
		for (uint32_t i = 0; i < ev->u.sample.count; i++)
			sum += ev->u.sample.codes[i] != 0;
	}
	if (ev->type == PYP_REC_CODE_ID)
		check(ev->u.code.id >= PYP_COUNT_FIRST && ev->u.code.id < PYP_COUNT_IDS);
	if (ev->type == PYP_REC_THREAD_EXIT)
		sum += (unsigned int)strlen(ev->u.thread.comm);
	return sum;
}

static void decode_one(const uint8_t *data, size_t size)
{
	volatile unsigned int sink;
	uint8_t *copy = malloc(size ? size : 1);
	struct event ev;

	if (!copy)
		return;
	if (size)
		memcpy(copy, data, size);
	if (decode_event(copy, size, &ev) == DECODE_OK) {
		sink = touch(&ev, copy + size);
		(void)sink;
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	decode_one(data, size);
	while (size) {
		size_t n = data[0] < size ? data[0] : size - 1;

		decode_one(data + 1, n);
		data += n + 1;
		size -= n + 1;
	}
	return 0;
}
