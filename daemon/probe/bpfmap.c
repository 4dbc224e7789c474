// SPDX-License-Identifier: BSD-2-Clause
/* Clearing a BPF map: see bpfmap.h. */
#include "probe/bpfmap.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"

/*
 * Elements per system call. The kernel returns whole buckets, so this exceeds the likely size of
 * any bucket.
 */
#define BATCH 4096u

/* keys, values: room for BATCH each. Returns 0 if the map is empty. */
static int clear_batches(int fd, void *keys, void *values)
{
	uint32_t at = 0, count;
	bool begun = false;
	int r;

	do {
		count = BATCH;
		r = bpf_map_lookup_and_delete_batch(fd, begun ? &at : NULL, &at, keys, values,
						    &count, NULL);
		begun = true;
	} while (r == 0);
	return r == -ENOENT ? 0 : r;
}

static void clear_each(int fd)
{
	uint8_t key[BPFMAP_KEY];

	while (!bpf_map_get_next_key(fd, NULL, key))
		if (bpf_map_delete_elem(fd, key))
			return;
}

void bpfmap_clear(int fd)
{
	_cleanup_free_ void *keys = NULL, *values = NULL;
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return;
	keys = calloc(BATCH, info.key_size);
	values = calloc(BATCH, info.value_size);
	if ((!keys || !values || clear_batches(fd, keys, values) < 0) &&
	    info.key_size <= BPFMAP_KEY)
		clear_each(fd);
}
