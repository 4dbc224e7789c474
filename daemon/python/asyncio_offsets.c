// SPDX-License-Identifier: BSD-2-Clause
/*
 * Offsets of asyncio's tasks. Since 3.14 the module _asyncio, a file of its own or a part of the
 * interpreter, has them in the section .AsyncioDebug (Modules/_asynciomodule.c,
 * Py_AsyncioModuleDebugOffsets), a list of 64-bit numbers:
 *
 *	task: size, name, awaited_by, is_task, awaited_by_is_set, coro, node
 *	interpreter: size, tasks_head
 *	thread: size, running_loop, running_task, tasks_head
 */
#include <string.h>

#include "python/python.h"

#define SECTION	    ".AsyncioDebug"
#define NUMBERS	    13
#define FIRST_MINOR 14
#define TASK_MAX    4096
#define STATE_MAX   (1u << 24)

static bool fits(uint64_t offset, uint64_t size)
{
	return offset && offset % 8 == 0 && offset < size;
}

static void take(const struct image *img, struct python *py)
{
	uint64_t vaddr, size, v[NUMBERS];
	const uint8_t *p;

	if (image_section(img, SECTION, &vaddr, &size) || size < sizeof(v))
		return;
	p = image_view(img, vaddr, sizeof(v));
	if (!p)
		return;
	memcpy(v, p, sizeof(v));
	if (v[0] > TASK_MAX || v[7] > STATE_MAX || v[9] > STATE_MAX || !fits(v[1], v[0]) ||
	    !fits(v[5], v[0]) || !fits(v[6], v[0]) || !fits(v[8], v[7]) || !fits(v[12], v[9]))
		return;
	py->asyncio = (struct python_asyncio){
		.task_name = (uint32_t)v[1],
		.task_coro = (uint32_t)v[5],
		.task_node = (uint32_t)v[6],
		.interp_tasks = (uint32_t)v[8],
		.thread_tasks = (uint32_t)v[12],
	};
}

static bool is_module(const struct target_map *m)
{
	const char *base = strrchr(m->path, '/');

	return m->exec && base && strncmp(base, "/_asyncio.", 10) == 0;
}

static void take_file(const struct target *t, const struct target_map *m, struct python *py)
{
	_cleanup_(image_freep) struct image *img = NULL;
	_cleanup_close_ int fd = -1;
	char via[64];

	fd = target_open_map(t, m, via, sizeof(via), NULL);
	if (fd >= 0 && image_open_fd(fd, m->path, &img, NULL) == 0)
		take(img, py);
}

void python_find_asyncio(const struct target *t, struct python *py)
{
	_cleanup_(target_maps_deinit) struct target_maps maps = {0};

	if (py->minor < FIRST_MINOR)
		return;
	take(py->image, py);
	if (py->asyncio.task_coro || target_maps_read(t, &maps, NULL))
		return;
	for (size_t i = 0; i < maps.n && !py->asyncio.task_coro; i++)
		if (is_module(&maps.v[i]))
			take_file(t, &maps.v[i], py);
}
