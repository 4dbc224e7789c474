// SPDX-License-Identifier: BSD-2-Clause
/* A ring buffer's positions: see ringpos.h. */
#include "probe/ringpos.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* The reader's page comes first, then the writer's. */
int ringpos_open(struct ringpos *rp, int map_fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *pages = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, map_fd, 0);

	if (pages == MAP_FAILED)
		return -errno;
	*rp = (struct ringpos){.pages = pages, .page = page};
	return 0;
}

void ringpos_close(struct ringpos *rp)
{
	if (rp->pages)
		munmap((void *)rp->pages, 2 * rp->page);
	*rp = (struct ringpos){0};
}

static uint64_t position(const struct ringpos *rp, size_t offset)
{
	const unsigned long *at = (const void *)((const char *)rp->pages + offset);

	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

uint64_t ringpos_written(const struct ringpos *rp)
{
	return position(rp, rp->page);
}

uint64_t ringpos_read(const struct ringpos *rp)
{
	return position(rp, 0);
}
