// SPDX-License-Identifier: BSD-2-Clause
/* Spans: see spans.h. */
#include "server/spans.h"

#include <errno.h>

static size_t bytes_of(const struct spans *s)
{
	size_t ret = 0;

	for (size_t i = 0; i < SPANS_MAX; i++)
		ret += s->v[i].bytes;
	return ret;
}

/* id 0: a free one. */
static struct span *find(struct spans *s, uint32_t id)
{
	for (size_t i = 0; i < SPANS_MAX; i++)
		if (s->v[i].id == id)
			return &s->v[i];
	return NULL;
}

int spans_begin(struct spans *s, struct snapshot *before, uint64_t end_ns, uint32_t *ret_id,
		struct diag *diag)
{
	const size_t bytes = snapshot_bytes(before), max = s->max ? s->max : SPANS_BYTES;
	struct span *span = find(s, 0);

	if (!span || bytes_of(s) + bytes > max) {
		snapshot_free(before);
		return diag_set(diag, -EBUSY, PYP_EXIT_NO_DAEMON, "try again later",
				"%u profiles or %zu MiB of snapshots for them are in progress: the "
				"limits are %u and %zu",
				SPANS_MAX, bytes_of(s) >> 20, SPANS_MAX, max >> 20);
	}
	s->last = s->last == UINT32_MAX ? 1 : s->last + 1;
	*span = (struct span){s->last, before, bytes, end_ns};
	*ret_id = span->id;
	return 0;
}

struct span *spans_find(struct spans *s, uint32_t id)
{
	return id ? find(s, id) : NULL;
}

void spans_end(struct spans *s, uint32_t id)
{
	struct span *span = spans_find(s, id);

	if (!span)
		return;
	snapshot_free(span->before);
	*span = (struct span){0};
}

void spans_deinit(struct spans *s)
{
	for (size_t i = 0; i < SPANS_MAX; i++)
		spans_end(s, s->v[i].id);
}
