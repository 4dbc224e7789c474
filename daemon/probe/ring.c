// SPDX-License-Identifier: BSD-2-Clause
#include "probe/ring.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "probe/ringmem.h"

struct ring {
	struct ringmem mem;
	void *map; /* of mem.data; NULL: none */
	struct ring_buffer *wakes;
};

/*
 * Number of records between two readings of the clock, and between two updates of the position: the
 * programs read it at every event.
 */
#define BATCH 32

/* Wakeups have no contents. */
static int on_wake(void *ctx, void *data, size_t size)
{
	(void)ctx, (void)data, (void)size;
	return 0;
}

int ring_open(const struct ring_opts *opts, struct ring **ret, struct diag *diag)
{
	_cleanup_(ring_freep) struct ring *g = calloc(1, sizeof(*g));

	if (!g)
		return diag_errno(diag, ENOMEM, "cannot map the ring buffer");
	g->map = mmap(NULL, ringmem_size(opts->bytes), PROT_READ, MAP_SHARED, opts->records_fd, 0);
	if (g->map == MAP_FAILED) {
		g->map = NULL;
		return diag_errno(diag, errno, "cannot map the ring buffer");
	}
	g->mem = (struct ringmem){
		.data = g->map, .pos = opts->pos, .bytes = opts->bytes, .key = opts->key};
	g->wakes = ring_buffer__new(opts->wakes_fd, on_wake, NULL, NULL);
	if (!g->wakes)
		return diag_errno(diag, errno, "cannot map the ring buffer of wakeups");
	*ret = TAKE_PTR(g);
	return 0;
}

void ring_free(struct ring *g)
{
	if (!g)
		return;
	ring_buffer__free(g->wakes);
	if (g->map)
		munmap(g->map, ringmem_size(g->mem.bytes));
	free(g);
}

uint64_t ring_written(const struct ring *g)
{
	return ringmem_written(&g->mem);
}

uint64_t ring_read(const struct ring *g)
{
	return ringmem_read(&g->mem);
}

static bool is_over(const struct ring_drain *how, size_t done)
{
	if (done == how->budget)
		return true;
	return how->until_ns && done % BATCH == 0 && clock_monotonic_ns() >= how->until_ns;
}

/* Busy targets write as fast as records are read, so only those present at the call count. */
int ring_drain(struct ring *g, const struct ring_drain *how)
{
	const uint64_t end = ringmem_written(&g->mem);
	uint64_t at = ringmem_read(&g->mem);
	int r = ring_buffer__consume(g->wakes);
	const void *record;
	size_t bytes, done = 0;

	while ((record = ringmem_record(&g->mem, at, end, &bytes))) {
		how->fn(how->ctx, record, bytes - sizeof(uint64_t));
		at += bytes;
		if (++done % BATCH == 0)
			ringmem_release(&g->mem, at);
		if (is_over(how, done))
			break;
	}
	ringmem_release(&g->mem, at);
	return r < 0 ? r : (int)done;
}
