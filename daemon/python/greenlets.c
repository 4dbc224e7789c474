// SPDX-License-Identifier: BSD-2-Clause
/*
 * Suspended greenlets: see python_greenlets() in details.h. A greenlet object, or (greenlet 2.0 and
 * later) a structure that it points to, has a pointer to the frame object where it is suspended. Its
 * offset differs between releases, so it is recognized by the type of what it points to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "python/census.h"
#include "python/details.h"
#include "python/frame_locals.h"
#include "python/line_tables.h"
#include "python/task_readings.h"
#include "python/values.h"

#define GREENLET   "greenlet.greenlet"
#define OBJECT_MAX 512u /* bytes of a greenlet that are searched */
/* The same of the structure: its size is unknown, but larger; others follow it in memory. */
#define STRUCT_MAX  160u
#define SMALL	    64u /* greenlet 2.0: a greenlet has few members besides the structure */
#define FRAMES_MAX  4096u
#define FRAME_FRAME 24u /* 3.11+: f_frame in PyFrameObject */

struct found {
	struct values *v;
	struct map types; /* address → whether it is a greenlet's */
	struct map known; /* addresses of greenlets */
	uint64_t objects[PYTHON_TASKS_MAX];
	size_t n;
	uint32_t more;
	bool imported;
	bool unknown; /* sys.modules was not found */
	int err;
};

static bool is_greenlet_type(struct found *f, uint64_t object, uint64_t type)
{
	struct value_class c;
	uint32_t is;

	if (map_get(&f->types, type, &is))
		return is;
	is = values_class(f->v, object, &c) && values_is_a(f->v, &c, GREENLET);
	f->err = map_put(&f->types, type, is);
	return is;
}

static void take_object(void *ctx, uint64_t object, uint64_t type)
{
	struct found *f = ctx;
	uint32_t at;

	if (f->err || !is_greenlet_type(f, object, type) || map_get(&f->known, object, &at))
		return;
	if (f->n == PYTHON_TASKS_MAX) {
		f->more++;
		return;
	}
	f->err = map_put(&f->known, object, 0);
	f->objects[f->n++] = object;
}

/* ---- stacks ------------------------------------------------------------------------------ */

static bool is_frame(struct values *v, uint64_t object)
{
	struct value_class c;

	return values_class(v, object, &c) && strcmp(c.name, "frame") == 0;
}

/* Searches memory for a pointer to a frame object. Returns that; 0: none. */
static uint64_t frame_in(struct values *v, uint64_t addr, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += 8) {
		uint64_t word = values_word(v, addr + at);

		if (word && is_frame(v, word))
			return word;
	}
	return 0;
}

/* c: greenlet.greenlet itself, not a subclass */
static uint64_t top_frame(struct values *v, uint64_t object, const struct value_class *c)
{
	uint64_t size = c->basicsize < OBJECT_MAX ? c->basicsize : OBJECT_MAX;
	uint64_t found = frame_in(v, object + v->head, size - v->head);

	/* Earlier releases have all in the object, and pointers to the C stack. */
	for (uint64_t at = v->head; !found && size <= SMALL && at < size; at += 8) {
		uint64_t word = values_word(v, object + at);
		struct value_class other;

		/* Not through other objects, such as the parent or the dict */
		if (word && word % 8 == 0 && !values_class(v, word, &other))
			found = frame_in(v, word, STRUCT_MAX);
	}
	return found && v->l->minor >= 11 ? values_word(v, found + FRAME_FRAME + v->head - 16u)
					  : found;
}

static bool is_entry(struct values *v, uint64_t frame)
{
	const struct pyp_layout *b = &v->l->bpf;
	uint8_t owner;

	return b->frame_owner != LAYOUT_NONE &&
	       (values_read(v, frame + b->frame_owner, &owner, 1) || owner >= b->owner_entry);
}

static void add_frame(struct values *v, struct line_tables *tables, struct python_task *t,
		      uint64_t frame)
{
	uint64_t code = frame_code(v, frame);
	uint64_t instr = values_word(v, frame + v->l->bpf.frame_instr);
	const struct lines *lines = line_tables_get(tables, v->l, &v->mem, code);

	t->frames[t->n++] = (struct python_task_frame){
		.frame = frame,
		.code = code,
		.line = lines ? lines_find(lines, lines_offset(v->l, code, instr)) : LINE_UNKNOWN,
	};
}

static void walk(struct values *v, struct line_tables *tables, struct python_task *t,
		 uint64_t frame)
{
	for (unsigned int i = 0; frame && i < FRAMES_MAX && t->n < PYTHON_TASK_FRAMES_MAX; i++) {
		if (!is_entry(v, frame) && frame_code(v, frame))
			add_frame(v, tables, t, frame);
		frame = values_word(v, frame + v->l->bpf.frame_previous);
	}
}

/* A greenlet that runs, has ended or was not started has no frame. */
static int read_greenlet(struct values *v, struct line_tables *tables, uint64_t object,
			 struct python_tasks *to)
{
	struct python_task t = {.task = object};
	struct value_class c, base;
	uint64_t frame;

	if (!values_class(v, object, &c) || !values_base(v, &c, GREENLET, &base))
		return 0;
	frame = top_frame(v, object, &base);
	if (!frame)
		return 0;
	t.frames = calloc(PYTHON_TASK_FRAMES_MAX, sizeof(*t.frames));
	if (!t.frames)
		return -ENOMEM;
	memcpy(t.waits, c.name, sizeof(t.waits));
	walk(v, tables, &t, frame);
	to->v[to->n++] = t;
	return 0;
}

static int read_all(struct values *v, void *ctx, struct python_tasks *ret)
{
	const struct found *f = ctx;
	struct python_tasks t = {.unread = f->more};
	struct line_tables tables = {0};
	int r = 0;

	t.v = calloc(f->n + 1, sizeof(*t.v));
	if (!t.v)
		return -ENOMEM;
	for (size_t i = 0; i < f->n && r == 0; i++)
		r = read_greenlet(v, &tables, f->objects[i], &t);
	line_tables_deinit(&tables);
	if (r < 0)
		python_tasks_deinit(&t);
	else
		*ret = t;
	return r;
}

/* ---- finding ----------------------------------------------------------------------------- */

static void look_for_module(void *ctx, uint64_t interp)
{
	struct found *f = ctx;

	f->imported |= values_global(f->v, interp, "greenlet", "greenlet") != 0;
	f->unknown |= !values_modules(f->v, interp);
}

static int find(const struct python *py, const struct memory *mem, struct found *f)
{
	int r = 0;

	values_each_interpreter(f->v, look_for_module, f);
	values_refresh(f->v);
	if (f->imported)
		r = python_census_each(py, mem, CENSUS_NS, take_object, f);
	return f->err ? f->err : r;
}

int python_greenlets(const struct python *py, const struct memory *mem, struct python_tasks *ret)
{
	_cleanup_free_ struct found *f = calloc(1, sizeof(*f));
	_cleanup_(values_freep) struct values *v = values_new(py, mem, 1u << 20);
	int r = -ENOMEM;

	if (f && v) {
		f->v = v;
		r = find(py, mem, f);
	}
	if (r == 0 && f->imported) {
		r = task_readings(py, mem, read_all, f, ret);
	} else if (r != -ENOMEM) {
		*ret = (struct python_tasks){.note = r < 0 || f->unknown ? PYTHON_TASKS_UNSUPPORTED
									 : PYTHON_TASKS_NO_MODULE};
		r = 0;
	}
	if (f) {
		map_deinit(&f->types);
		map_deinit(&f->known);
	}
	return r;
}
