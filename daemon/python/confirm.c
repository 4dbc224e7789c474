// SPDX-License-Identifier: BSD-2-Clause
/*
 * Confirms a layout table with data of the interpreter. Since 3.13 _PyRuntime begins with
 * _Py_DebugOffsets (3.13 Include/internal/pycore_runtime.h), a list of offsets. Their positions
 * depend on the minor version, their meaning does not. They are constants in the file, so no
 * process is needed.
 */
#include <errno.h>
#include <string.h>

#include "python/inside.h"

#define DEBUG_COOKIE	  "xdebugpy"
#define DEBUG_HEAD	  24
#define DEBUG_FIRST_MINOR 13
#define DEBUG_INTERP_SIZE 48

/* An offset: its position in _Py_DebugOffsets, the position of its structure's size, its alignment,
 * and its field in struct layout. */
struct debug_field {
	uint16_t at, size_at;
	uint8_t align;
	bool fixed; /* must equal the table, because unlisted fields depend on it */
	uint16_t field;
};

#define FIELD(at, size_at, align, name)                                                            \
	{                                                                                          \
		at, size_at, align, false, offsetof(struct layout, name)                           \
	}
#define FIXED_FIELD(at, size_at, align, name)                                                      \
	{                                                                                          \
		at, size_at, align, true, offsetof(struct layout, name)                            \
	}

#define DEBUG_SIZE_3_13 584
#define DEBUG_SIZE_3_14 760
#define DEBUG_SIZE_3_15 888
static const struct debug_field fields_3_13[] = {
	FIELD(40, 24, 8, runtime_interpreters_head),
	FIELD(64, 48, 8, interp_next),
	FIELD(72, 48, 8, interp_threads_head),
	FIELD(80, 48, 8, gc_state),
	FIELD(88, 48, 8, interp_modules),
	FIELD(168, 152, 8, ts_next),
	FIELD(176, 152, 8, ts_interp),
	FIELD(184, 152, 8, ts_frame),
	FIELD(192, 152, 8, ts_thread_id),
	FIELD(200, 152, 8, ts_native_thread_id),
	FIELD(232, 224, 8, bpf.frame_previous),
	FIELD(240, 224, 8, bpf.frame_code),
	FIELD(248, 224, 8, bpf.frame_instr),
	FIELD(256, 224, 8, frame_localsplus),
	FIELD(264, 224, 1, bpf.frame_owner),
	FIXED_FIELD(280, 272, 8, bpf.code_filename),
	FIXED_FIELD(288, 272, 8, bpf.code_name),
	FIXED_FIELD(296, 272, 8, bpf.code_qualname),
	FIXED_FIELD(312, 272, 4, bpf.code_firstlineno),
	FIXED_FIELD(344, 272, 8, bpf.code_start),
	FIXED_FIELD(360, 352, 8, bpf.object_type),
	FIXED_FIELD(544, 536, 4, bpf.str_state),
	FIXED_FIELD(552, 536, 8, bpf.str_length),
	FIXED_FIELD(560, 536, 8, bpf.str_ascii_data),
};

/* 3.14 and 3.15: positions were read from the structs in the binaries, field by field in the order
 * of the versions' pycore_debug_offsets.h. */
static const struct debug_field fields_3_14[] = {
	FIELD(40, 24, 8, runtime_interpreters_head),
	FIELD(64, 48, 8, interp_next),
	FIELD(72, 48, 8, interp_threads_head),
	FIELD(88, 48, 8, gc_state),
	FIELD(96, 48, 8, interp_modules),
	FIELD(192, 176, 8, ts_next),
	FIELD(200, 176, 8, ts_interp),
	FIELD(208, 176, 8, ts_frame),
	FIELD(216, 176, 8, ts_thread_id),
	FIELD(224, 176, 8, ts_native_thread_id),
	FIELD(256, 248, 8, bpf.frame_previous),
	FIELD(264, 248, 8, bpf.frame_code),
	FIELD(272, 248, 8, bpf.frame_instr),
	FIELD(280, 248, 8, frame_localsplus),
	FIELD(288, 248, 1, bpf.frame_owner),
	FIXED_FIELD(320, 312, 8, bpf.code_filename),
	FIXED_FIELD(328, 312, 8, bpf.code_name),
	FIXED_FIELD(336, 312, 8, bpf.code_qualname),
	FIXED_FIELD(352, 312, 4, bpf.code_firstlineno),
	FIXED_FIELD(384, 312, 8, bpf.code_start),
	FIXED_FIELD(408, 400, 8, bpf.object_type),
	FIXED_FIELD(624, 616, 4, bpf.str_state),
	FIXED_FIELD(632, 616, 8, bpf.str_length),
	FIXED_FIELD(640, 616, 8, bpf.str_ascii_data),
};

static const struct debug_field fields_3_15[] = {
	FIELD(40, 24, 8, runtime_interpreters_head),
	FIELD(64, 48, 8, interp_next),
	FIELD(72, 48, 8, interp_threads_head),
	FIELD(88, 48, 8, gc_state),
	FIELD(96, 48, 8, interp_modules),
	FIELD(192, 176, 8, ts_next),
	FIELD(200, 176, 8, ts_interp),
	FIELD(208, 176, 8, ts_frame),
	FIELD(240, 176, 8, ts_thread_id),
	FIELD(248, 176, 8, ts_native_thread_id),
	FIELD(320, 312, 8, bpf.frame_previous),
	FIELD(328, 312, 8, bpf.frame_code),
	FIELD(336, 312, 8, bpf.frame_instr),
	FIELD(344, 312, 8, frame_localsplus),
	FIELD(352, 312, 1, bpf.frame_owner),
	FIXED_FIELD(384, 376, 8, bpf.code_filename),
	FIXED_FIELD(392, 376, 8, bpf.code_name),
	FIXED_FIELD(400, 376, 8, bpf.code_qualname),
	FIXED_FIELD(416, 376, 4, bpf.code_firstlineno),
	FIXED_FIELD(448, 376, 8, bpf.code_start),
	FIXED_FIELD(472, 464, 8, bpf.object_type),
	FIXED_FIELD(720, 712, 4, bpf.str_state),
	FIXED_FIELD(728, 712, 8, bpf.str_length),
	FIXED_FIELD(736, 712, 8, bpf.str_ascii_data),
};

/* By minor version, starting with 3.13 */
static const struct {
	const struct debug_field *v;
	size_t n, size;
	size_t gil; /* offset of the interpreter's pointer to its GIL (ceval_gil) */
} debug_tables[] = {
	{fields_3_13, sizeof(fields_3_13) / sizeof(*fields_3_13), DEBUG_SIZE_3_13, 112},
	{fields_3_14, sizeof(fields_3_14) / sizeof(*fields_3_14), DEBUG_SIZE_3_14, 120},
	{fields_3_15, sizeof(fields_3_15) / sizeof(*fields_3_15), DEBUG_SIZE_3_15, 120},
};

static uint64_t debug_u64(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static int unknown_layout(struct diag *diag, const struct python *py, const char *what)
{
	return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, "",
			"Python %s in '%s' has an unknown memory layout: %s", py->version, py->file,
			what);
}

/* p: all of _Py_DebugOffsets */
static int take_fields(const uint8_t *p, const struct debug_field *fields, size_t n,
		       struct python *py, struct diag *diag)
{
	struct layout l = py->layout;
	uint16_t *lo = &l.bpf.frame_code, *hi = &l.bpf.frame_previous;

	for (size_t i = 0; i < n; i++) {
		const struct debug_field *f = &fields[i];
		uint64_t v = debug_u64(p, f->at), size = debug_u64(p, f->size_at);
		uint16_t *field = (uint16_t *)((char *)&l + f->field);

		if (v >= size || v >= LAYOUT_NONE || v % f->align)
			return unknown_layout(diag, py, "_Py_DebugOffsets is invalid");
		if (f->fixed && v != *field)
			return unknown_layout(diag, py, "object offsets differ");
		*field = (uint16_t)v;
	}
	if (*lo > *hi) {
		lo = &l.bpf.frame_previous;
		hi = &l.bpf.frame_code;
	}
	if (*hi + 8 - *lo > 32)
		return unknown_layout(diag, py, "frame offsets differ");
	l.bpf.frame_block = *lo;
	py->layout = l;
	py->debug_offsets = true;
	return 0;
}

bool python_is_free_threaded(const struct image *img, uint64_t runtime_vaddr)
{
	const uint8_t *p = runtime_vaddr ? image_view(img, runtime_vaddr, DEBUG_HEAD) : NULL;

	return p && memcmp(p, DEBUG_COOKIE, 8) == 0 && debug_u64(p, 16) != 0;
}

/* Without the offset the GIL is unknown; that is not an error. */
static void take_gil(const uint8_t *p, size_t at, struct python *py)
{
	uint64_t v = debug_u64(p, at);

	if (v < debug_u64(p, DEBUG_INTERP_SIZE) && v < LAYOUT_NONE && v % 8 == 0)
		py->gil.interp = (uint16_t)v;
}

static int confirm_by_debug_offsets(const struct image *img, uint64_t vaddr, struct python *py,
				    struct diag *diag)
{
	const uint8_t *p = vaddr ? image_view(img, vaddr, DEBUG_HEAD) : NULL;
	size_t i;

	if (!p || memcmp(p, DEBUG_COOKIE, 8) != 0)
		return unknown_layout(diag, py, "_Py_DebugOffsets is missing");
	if (debug_u64(p, 8) >> 8 != python_hex(py))
		return unknown_layout(diag, py, "_Py_DebugOffsets has another version");
	i = py->minor - DEBUG_FIRST_MINOR;
	if (i >= sizeof(debug_tables) / sizeof(*debug_tables))
		return 0;
	p = image_view(img, vaddr, debug_tables[i].size);
	if (!p)
		return unknown_layout(diag, py, "_Py_DebugOffsets is truncated");
	take_gil(p, debug_tables[i].gil, py);
	return take_fields(p, debug_tables[i].v, debug_tables[i].n, py, diag);
}

/*
 * interp->eval_frame moves between micro releases. _PyInterpreterState_GetEvalFrameFunc(interp)
 * starts with loading it: [endbr64] mov disp32(%rdi),%rax.
 */
static void confirm_eval_frame(const struct image *img, struct layout *l)
{
	static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct image_symbol sym;
	const uint8_t *p;
	uint32_t disp;

	if (image_symbol(img, "_PyInterpreterState_GetEvalFrameFunc", &sym))
		return;
	p = image_view(img, sym.vaddr, 11);
	if (!p)
		return;
	if (memcmp(p, endbr64, 4) == 0)
		p += 4;
	if (p[0] != 0x48 || p[1] != 0x8b || p[2] != 0x87)
		return;
	memcpy(&disp, p + 3, 4);
	if (disp < LAYOUT_NONE && disp % 8 == 0)
		l->interp_eval_frame = (uint16_t)disp;
}

int python_confirm_layout(const struct image *img, uint64_t runtime_vaddr, struct python *py,
			  struct diag *diag)
{
	confirm_eval_frame(img, &py->layout);
	if (py->minor < DEBUG_FIRST_MINOR)
		return 0;
	return confirm_by_debug_offsets(img, runtime_vaddr, py, diag);
}
