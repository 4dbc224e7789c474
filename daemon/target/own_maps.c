// SPDX-License-Identifier: BSD-2-Clause
/* The mappings of this process itself: see target.h. */
#include "target/target.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "target/proc.h"

#define SELF_MAPS (16u << 20)

int target_unmap_shared(uint64_t *ret_size)
{
	_cleanup_(target_maps_deinit) struct target_maps maps = {0};
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = proc_read(AT_FDCWD, "/proc/self/maps", SELF_MAPS, &text, &size);

	if (r == 0)
		r = target_maps_parse(text, size, &maps, NULL);
	for (size_t i = 0; i < maps.n; i++) {
		const struct target_map *m = &maps.v[i];

		if (m->shared)
			(void)munmap((void *)(uintptr_t)m->start, m->end - m->start);
		else
			*ret_size += m->end - m->start;
	}
	return r;
}
