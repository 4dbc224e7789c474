// SPDX-License-Identifier: BSD-2-Clause
/* The interpreter's code that runs Python: see own_code.h. */
#include "plan/own_code.h"

#include "elf/image.h"
#include "plan/planner.h"
#include "python/layout.h"

struct ranges {
	struct pyp_code_range *v;
	unsigned int n;
};

/* Add the function, or part of a split one, that contains the address. */
static void add_function(struct ranges *r, const struct image *img, uint64_t vaddr)
{
	uint64_t start, end;

	for (unsigned int i = 0; i < r->n; i++)
		if (vaddr - r->v[i].start < r->v[i].size)
			return;
	if (r->n == PYP_OWN_CODE || image_function_range(img, vaddr, &start, &end) < 0)
		return;
	r->v[r->n++] = (struct pyp_code_range){.start = start, .size = end - start};
}

static void add_symbol(struct ranges *r, const struct image *img, const char *name)
{
	struct image_symbol sym;

	if (image_symbol(img, name, &sym) == 0)
		add_function(r, img, sym.vaddr);
}

/* Compilers split off rarely executed handlers, sometimes all of them, so use the dispatch
 * table. */
static void add_handlers(struct ranges *r, const struct image *img, uint64_t table_vaddr)
{
	uint64_t handler;

	for (unsigned int i = 0; table_vaddr && i < PLAN_OPCODES; i++)
		if (image_pointer(img, table_vaddr + 8 * i, &handler) == 0)
			add_function(r, img, handler);
}

/* The destructor of frames: up to 3.10 each call of a Python function creates a frame object. */
static void add_frame_dealloc(struct ranges *r, const struct image *img, const struct layout *l)
{
	struct image_symbol type;
	uint64_t dealloc;

	if (l->model == LAYOUT_FRAME_OBJECT && image_symbol(img, "PyFrame_Type", &type) == 0 &&
	    image_pointer(img, type.vaddr + l->type_dealloc, &dealloc) == 0)
		add_function(r, img, dealloc);
}

/* Functions with probes, whatever their names are. */
static void add_sites(struct ranges *r, const struct image *img, const struct plan *plan)
{
	for (unsigned int i = 0; i < plan->nsites; i++)
		if (plan->sites[i].kind != PYP_SITE_CODE_FREE)
			add_function(r, img, plan->sites[i].vaddr);
}

unsigned int own_code_find(const struct image *img, const struct layout *l, const struct plan *plan,
			   struct pyp_code_range out[PYP_OWN_CODE])
{
	/* Names in various versions; functions that are not exported remain unknown. */
	static const char *const calls[] = {
		"_PyFunction_Vectorcall",
		"_PyFunction_FastCallDict",
		"_PyFunction_FastCallKeywords",
		"_PyEval_EvalCodeWithName",
		"_PyEval_Vector",
		"_PyEvalFramePushAndInit",
		"_PyEval_FrameClearAndPop",
		"_PyFrame_New_NoTrack",
		"PyFrame_New",
	};
	struct ranges r = {.v = out};

	add_symbol(&r, img, "_PyEval_EvalFrameDefault");
	if (!r.n)
		return 0;
	add_sites(&r, img, plan);
	add_handlers(&r, img, plan->table_vaddr);
	add_frame_dealloc(&r, img, l);
	for (unsigned int i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		add_symbol(&r, img, calls[i]);
	return r.n;
}
