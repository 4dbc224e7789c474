// SPDX-License-Identifier: BSD-2-Clause
#include "probe/ring.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "probe/ringpos.h"

struct ring {
	struct ring_buffer *rb;
	struct ringpos pos;
	/* State of one drain. */
	struct ring_drain how;
	size_t done;
	uint64_t at, goal; /* positions in bytes; at: end of the last record */
};

/* Number of records between two readings of the clock. */
#define CLOCK_RECORDS 32

/*
 * Computes the position from the records' sizes, which is exact because none is ever discarded.
 * Reading it from the page shared with the kernel would cost a tenth of a record's processing time.
 */
static bool is_over(struct ring *g, size_t size)
{
	g->at += ringpos_record(size);
	if (g->done == g->how.budget || g->at >= g->goal)
		return true;
	return g->how.until_ns && g->done % CLOCK_RECORDS == 0 &&
	       clock_monotonic_ns() >= g->how.until_ns;
}

/*
 * A negative return value stops libbpf after this record. Otherwise it continues while there are
 * records, which a busy target may write as fast as they are read.
 */
static int on_record(void *ctx, void *data, size_t size)
{
	struct ring *g = ctx;

	g->how.fn(g->how.ctx, data, size);
	g->done++;
	return is_over(g, size) ? -EAGAIN : 0;
}

int ring_open(int map_fd, struct ring **ret, struct diag *diag)
{
	_cleanup_(ring_freep) struct ring *g = calloc(1, sizeof(*g));

	if (!g)
		return diag_errno(diag, ENOMEM, "cannot map the ring buffer");
	g->rb = ring_buffer__new(map_fd, on_record, g, NULL);
	if (!g->rb || ringpos_open(&g->pos, map_fd) < 0)
		return diag_errno(diag, errno, "cannot map the ring buffer");
	*ret = TAKE_PTR(g);
	return 0;
}

void ring_free(struct ring *g)
{
	if (!g)
		return;
	ring_buffer__free(g->rb);
	ringpos_close(&g->pos);
	free(g);
}

uint64_t ring_written(const struct ring *g)
{
	return ringpos_written(&g->pos);
}

uint64_t ring_read(const struct ring *g)
{
	return ringpos_read(&g->pos);
}

int ring_drain(struct ring *g, const struct ring_drain *how)
{
	int r = 0;

	g->how = *how;
	g->done = 0;
	g->goal = ringpos_written(&g->pos);
	g->at = ringpos_read(&g->pos);
	if (g->at < g->goal)
		r = ring_buffer__consume(g->rb);
	return r < 0 && r != -EAGAIN ? r : (int)g->done;
}
