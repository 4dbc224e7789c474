// SPDX-License-Identifier: BSD-2-Clause
/*
 * Ring bytes from decoding to a view: no records of a hostile target may crash the daemon or break
 * the guarantees of a snapshot. Input: records, each after a byte with its size in units of 8
 * bytes. The limits are small, so that the input reaches them.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "event/decode.h"
#include "profile/profile.h"
#include "stats/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct profile *p, uint64_t now)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_new();
	_cleanup_(view_freep) struct view *v = NULL;
	struct snapshot_target target = {0};

	if (!s || profile_snapshot(p, now, 1, s, &target))
		abort();
	if (!snapshot_valid(s) || view_build(s, NULL, &v))
		abort();
	if (v->ncalls != profile_counts(p).calls)
		abort();
}

/* walks: no events of calls are expected, but stacks of waits: see counting/waiting.h. */
static void run(const uint8_t *data, size_t size, bool walks)
{
	const struct profile_limits limits = {
		.nodes = 64, .funcs = 16, .threads = 8, .depth = 32, .string_bytes = 256};
	_cleanup_(profile_freep) struct profile *p = profile_new(&limits, NULL, NULL);
	uint64_t record[256], now = 0;

	if (!p || (walks && profile_keep_walks(p) < 0))
		abort();
	while (size > 1) {
		size_t n = (size_t)*data * 8 < size - 1 ? (size_t)*data * 8 : size - 1;
		struct event e;

		memcpy(record, data + 1, n);
		data += n + 1;
		size -= n + 1;
		if (decode_event(record, n, &e) != DECODE_OK)
			continue;
		now = e.ts;
		profile_event(p, &e);
		if (e.site == 63)
			profile_clear(p, e.ts);
	}
	check(p, now);
	profile_end(p, now);
	check(p, now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	run(data, size, false);
	run(data, size, true);
	return 0;
}
