// SPDX-License-Identifier: BSD-2-Clause
/* Clearing a BPF map: see bpfmap.h. */
#include "probe/bpfmap.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Elements per system call. The kernel returns whole buckets, so this exceeds the likely size of
 * any bucket.
 */
#define BATCH 4096u

struct batch {
	uint8_t keys[BATCH][BPFMAP_WORD], values[BATCH][BPFMAP_WORD];
};

/* Returns 0 if the map is empty. */
static int clear_batches(int fd, struct batch *b)
{
	uint32_t at = 0, count;
	bool begun = false;
	int r;

	do {
		count = BATCH;
		r = bpf_map_lookup_and_delete_batch(fd, begun ? &at : NULL, &at, b->keys, b->values,
						    &count, NULL);
		begun = true;
	} while (r == 0);
	return r == -ENOENT ? 0 : r;
}

static void clear_each(int fd)
{
	uint8_t key[BPFMAP_WORD];

	while (!bpf_map_get_next_key(fd, NULL, key))
		if (bpf_map_delete_elem(fd, key))
			return;
}

void bpfmap_clear(int fd)
{
	struct batch *b = malloc(sizeof(*b));

	if (!b || clear_batches(fd, b) < 0)
		clear_each(fd);
	free(b);
}
