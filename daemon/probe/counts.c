// SPDX-License-Identifier: BSD-2-Clause
/* The maps of mode count: see counts.h. */
#include "probe/counts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define BATCH_FIRST 4096u

void counts_forget(int state_fd)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info), zero = 0;
	_cleanup_free_ void *empty = NULL;

	if (bpf_obj_get_info_by_fd(state_fd, &info, &len) < 0)
		return;
	empty = calloc(1, info.value_size);
	if (empty)
		bpf_map_update_elem(state_fd, &zero, empty, BPF_ANY);
}

/* The elements read so far. */
struct reading {
	struct pyp_edge *keys;
	uint64_t *values;
	size_t n, room;
};

static void reading_deinit(struct reading *r)
{
	free(r->keys);
	free(r->values);
}

static int reading_grow(struct reading *r)
{
	size_t room = r->room ? 2 * r->room : BATCH_FIRST;
	struct pyp_edge *keys = reallocarray(r->keys, room, sizeof(*keys));
	uint64_t *values;

	if (!keys)
		return -ENOMEM;
	r->keys = keys;
	values = reallocarray(r->values, room, sizeof(*values));
	if (!values)
		return -ENOMEM;
	r->values = values;
	r->room = room;
	return 0;
}

/*
 * Whole buckets are read: if the buffer is too small for the next bucket, the kernel returns an
 * error and the buffer grows.
 */
static int reading_all(int fd, struct reading *r)
{
	uint32_t at = 0, count;
	bool begun = false;
	int err = reading_grow(r);

	while (!err) {
		count = (uint32_t)(r->room - r->n);
		err = bpf_map_lookup_batch(fd, begun ? &at : NULL, &at, r->keys + r->n,
					   r->values + r->n, &count, NULL);
		if (err == -ENOSPC || err == 0 || err == -ENOENT) {
			if (err != -ENOSPC)
				r->n += count;
			begun |= err == 0;
			if (err == -ENOENT)
				return 0;
			err = r->room - r->n < BATCH_FIRST || err ? reading_grow(r) : 0;
		}
	}
	return err;
}

int counts_read(int edges_fd, struct probe_count **ret, size_t *ret_n)
{
	_cleanup_(reading_deinit) struct reading r = {0};
	struct probe_count *v;
	int err = reading_all(edges_fd, &r);

	if (err)
		return err;
	v = calloc(r.n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < r.n; i++)
		v[i] = (struct probe_count){.edge = r.keys[i], .calls = r.values[i]};
	*ret = v;
	*ret_n = r.n;
	return 0;
}
