// SPDX-License-Identifier: BSD-2-Clause
/* Durations by function: see durations.h. */
#include "stats/durations.h"

#include <stdlib.h>
#include <string.h>

void durations_clear(struct durations *d)
{
	for (uint32_t i = 0; i < d->n; i++) {
		free(d->v[i].both.n);
		free(d->v[i].only[SNAPSHOT_CPU].n);
		free(d->v[i].only[SNAPSHOT_WALL].n);
	}
	free(d->v);
	d->v = NULL;
	d->n = 0;
	d->bytes = d->dropped = 0;
}

void durations_deinit(struct durations *d)
{
	durations_clear(d);
}

bool durations_reserve(struct durations *d, uint32_t func)
{
	uint32_t n = d->n ? d->n * 2 : 64;
	uint64_t more;
	struct durations_func *v;

	while (n <= func && n < UINT32_MAX / 2)
		n *= 2;
	more = (uint64_t)(n - d->n) * sizeof(*v);
	v = n > func && d->bytes + more <= DURATIONS_MAX_BYTES
		    ? aligned_alloc(sizeof(*v), n * sizeof(*v))
		    : NULL;
	if (!v) {
		d->dropped++;
		return false;
	}
	memset(v + d->n, 0, (n - d->n) * sizeof(*v));
	if (d->n)
		memcpy(v, d->v, d->n * sizeof(*v));
	free(d->v);
	d->v = v;
	d->n = n;
	d->bytes += more;
	return true;
}

void durations_add_slow(struct durations *d, struct histogram *h, uint32_t bucket)
{
	size_t more = d->bytes < DURATIONS_MAX_BYTES ? histogram_grow(h, bucket) : 0;

	if (!more) {
		d->dropped++;
		return;
	}
	d->bytes += more;
	h->n[bucket - h->first]++;
}

int durations_take(const struct durations *d, uint32_t func, struct snapshot *s,
		   struct snapshot_func *to)
{
	const struct durations_func *f = func < d->n ? &d->v[func] : NULL;
	int err = 0;

	if (!f)
		return 0;
	for (int c = 0; c < SNAPSHOT_CLOCKS && !err; c++) {
		struct histogram_sum sum = {.count = 0};

		histogram_add(&sum, &f->both);
		histogram_add(&sum, &f->only[c]);
		err = snapshot_add_durations(s, to, c, &sum, f->max[c]);
	}
	return err;
}
