// SPDX-License-Identifier: BSD-2-Clause
/* Reads the GILs of a process: see gils.h. */
#include "inspect/gils.h"

#include <string.h>

/*
 * struct _gil_runtime_state in 3.7 to 3.15 (Include/internal/pycore_gil.h): the switch interval,
 * the holder, then two pairs of a condition variable and a mutex, up to the end of the last one.
 * GIL_PART_SIZE: the larger of a condition variable and a mutex.
 */
#define GIL_SIZE      208
#define GIL_PART_SIZE 48
/* The longest plausible switch interval, in us. */
#define INTERVAL_MAX 1000000000
#define INTERPRETERS 64

struct gils {
	struct pyp_gil_range *v;
	size_t n;
};

static void add(struct gils *g, const struct memory *mem, uint64_t addr)
{
	uint64_t interval;

	for (size_t i = 0; i < g->n; i++)
		if (g->v[i].start == addr)
			return; /* interpreters may share a GIL */
	if (g->n == PYP_GIL_RANGES || !addr || addr % 8 ||
	    memory_read_u64(mem, addr, &interval) < 0 || !interval || interval > INTERVAL_MAX)
		return;
	g->v[g->n] = (struct pyp_gil_range){addr, GIL_SIZE, (uint32_t)g->n};
	g->n++;
}

static void add_parts(struct gils *g, const struct python *py)
{
	for (int i = 0; i < PYTHON_GIL_PARTS && py->gil.parts[i]; i++)
		g->v[g->n++] =
			(struct pyp_gil_range){py->gil.parts[i] + py->bias, GIL_PART_SIZE, 0};
}

/* The list can change while it is read, so at most INTERPRETERS entries are visited. */
static void add_interpreters(struct gils *g, const struct python *py, const struct memory *mem)
{
	uint64_t head = python_interp_head(py), interp, gil;

	if (!head || memory_read_u64(mem, head, &interp) < 0)
		return;
	for (int i = 0; i < INTERPRETERS && interp; i++) {
		if (memory_read_u64(mem, interp + py->gil.interp, &gil) == 0)
			add(g, mem, gil);
		if (memory_read_u64(mem, interp + py->layout.interp_next, &interp) < 0)
			return;
	}
}

size_t gils_read(const struct python *py, const struct memory *mem,
		 struct pyp_gil_range out[PYP_GIL_RANGES])
{
	struct gils g = {.v = out};
	uint64_t at = py->gil.at ? py->gil.at + py->bias : 0;

	memset(out, 0, PYP_GIL_RANGES * sizeof(*out));
	if (py->gil.interp)
		add_interpreters(&g, py, mem);
	else if (py->gil.parts[0])
		add_parts(&g, py);
	else if (at && !py->gil.pointer)
		add(&g, mem, at);
	else if (at && memory_read_u64(mem, at, &at) == 0)
		add(&g, mem, at + py->gil.behind);
	return g.n;
}
