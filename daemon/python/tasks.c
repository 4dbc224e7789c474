// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads asyncio's tasks: see details.h. Up to 3.13 the module asyncio.tasks has a WeakSet of them;
 * from 3.14 on each thread has a linked list, and the WeakSet has those of other implementations.
 * The frames of a task are those of its coroutine, of the coroutine that this one awaits, and so on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "python/coroutines.h"
#include "python/details.h"
#include "python/frame_locals.h"
#include "python/line_tables.h"
#include "python/task_readings.h"
#include "python/values.h"

#define TYPE_DICT 264u
#define WRAPPERS  4u

/* Offsets in TaskObj (Modules/_asynciomodule.c), by minor version; name 0: tasks have none */
struct task_offsets {
	uint32_t state, coro, name;
};
static const struct task_offsets offsets_by_minor[] = {
	[6] = {56, 96, 0},     [7] = {72, 112, 0},    [8] = {72, 112, 120},  [9] = {80, 152, 160},
	[10] = {88, 160, 168}, [11] = {88, 136, 144}, [12] = {88, 136, 144}, [13] = {96, 120, 128},
};

struct reading_tasks {
	struct values *v;
	struct line_tables lines;
	struct python_tasks *to;
	struct map known; /* addresses of tasks */
	uint64_t tstate;  /* of the thread whose list is read */
	bool asyncio;	  /* some interpreter has imported it */
	bool unlisted;	  /* but its tasks were not found */
	int err;
};

/* ---- one task ---------------------------------------------------------------------------- */

/* Calls of asyncio that wait for several tasks, and the variable or attribute that has them */
static const struct {
	const char *function, *local, *attribute;
} waiting_calls[] = {
	{"_wait", "fs", NULL},
	{"wait_for", "fut", NULL},
	{"__aexit__", "self", "_tasks"}, /* TaskGroup */
	{"_aexit", "self", "_tasks"},
};

static bool is_task(struct values *v, uint64_t object)
{
	struct value_class c;

	return values_class(v, object, &c) &&
	       (values_is_a(v, &c, "_asyncio.Task") || values_is_a(v, &c, "Task"));
}

struct awaiting {
	struct values *v;
	struct python_task *t;
};

static bool add_awaited(void *ctx, uint64_t key, uint64_t object)
{
	struct awaiting *a = ctx;

	(void)key;
	for (size_t i = 0; i < a->t->nawaits; i++)
		if (a->t->awaits[i] == object)
			return true;
	if (object != a->t->task && is_task(a->v, object))
		a->t->awaits[a->t->nawaits++] = object;
	return a->t->nawaits < PYTHON_TASK_AWAITS_MAX;
}

/* The object is a task, a set or list of tasks, or a future that waits for its children. */
static void add_all(struct awaiting *a, uint64_t object)
{
	uint64_t children;

	if (!object || a->t->nawaits == PYTHON_TASK_AWAITS_MAX)
		return;
	if (is_task(a->v, object)) {
		(void)add_awaited(a, 0, object);
		return;
	}
	if (values_each(a->v, object, add_awaited, a))
		return;
	children = values_attribute(a->v, object, "_children");
	if (children)
		(void)values_each(a->v, children, add_awaited, a);
}

/* The innermost coroutine is one of asyncio's that wait. */
static void add_by_call(struct awaiting *a, uint64_t frame)
{
	struct values *v = a->v;
	uint64_t name = values_word(v, frame_code(v, frame) + v->l->bpf.code_name), object;

	for (size_t i = 0; i < sizeof(waiting_calls) / sizeof(*waiting_calls); i++) {
		if (!values_equal(v, name, waiting_calls[i].function))
			continue;
		object = frame_locals_get(v, frame, waiting_calls[i].local);
		if (waiting_calls[i].attribute)
			object = values_attribute(v, object, waiting_calls[i].attribute);
		add_all(a, object);
	}
	/* Futures that are not implemented in C */
	if (values_equal(v, name, "__await__") || values_equal(v, name, "__iter__"))
		add_all(a, frame_locals_get(v, frame, "self"));
}

static void add_frame(struct reading_tasks *r, struct python_task *t, uint64_t frame)
{
	const struct layout *l = r->v->l;
	uint64_t code = frame_code(r->v, frame);
	uint64_t instr = values_word(r->v, frame + l->bpf.frame_instr);
	const struct lines *lines = line_tables_get(&r->lines, l, &r->v->mem, code);

	t->frames[t->n++] = (struct python_task_frame){
		.frame = frame,
		.code = code,
		.line = lines ? lines_find(lines, lines_offset(l, code, instr)) : LINE_UNKNOWN,
	};
}

/* Follows the coroutines from the outermost to the innermost. Returns what that one awaits. */
static uint64_t follow(struct reading_tasks *r, struct python_task *t, uint64_t object)
{
	unsigned int wrappers = 0;

	while (object && t->n < PYTHON_TASK_FRAMES_MAX) {
		uint64_t frame = coroutine_frame(r->v, object), inner;

		if (frame) {
			add_frame(r, t, frame);
			wrappers = 0;
			object = coroutine_awaits(r->v, frame);
			continue;
		}
		inner = coroutine_inner(r->v, object);
		if (!inner || ++wrappers > WRAPPERS)
			return object;
		object = inner;
	}
	return object;
}

static void reverse(struct python_task *t)
{
	for (size_t i = 0; i + 1 < t->n - i; i++) {
		struct python_task_frame f = t->frames[i];

		t->frames[i] = t->frames[t->n - 1 - i];
		t->frames[t->n - 1 - i] = f;
	}
}

static void read_chain(struct reading_tasks *r, struct python_task *t, uint64_t coro)
{
	struct awaiting a = {r->v, t};
	uint64_t last = follow(r, t, coro);
	struct value_class c;

	if (last && values_class(r->v, last, &c))
		memcpy(t->waits, c.name, sizeof(t->waits));
	if (t->n)
		add_by_call(&a, t->frames[t->n - 1].frame);
	add_all(&a, last);
	if (t->n)
		reverse(t);
}

/* A str, or since 3.12 the number of a task that was given no name. */
static char *read_name(struct values *v, uint64_t object)
{
	char text[32];
	uint64_t n;

	if (!object || !values_int(v, object, &n))
		return object ? values_str(v, object, PYTHON_NAME_MAX) : NULL;
	snprintf(text, sizeof(text), "Task-%" PRIu64, n);
	return strdup(text);
}

/* The thread that runs the event loop: 0 if the loop is not one of asyncio's own. */
struct wanted_thread {
	struct values *v;
	uint64_t id, tstate;
};

static void id_matches(void *ctx, uint64_t interp, uint64_t tstate)
{
	struct wanted_thread *w = ctx;

	(void)interp;
	if (values_word(w->v, tstate + w->v->l->ts_thread_id) == w->id)
		w->tstate = tstate;
}

static uint64_t thread_of_loop(struct values *v, uint64_t loop)
{
	struct wanted_thread w = {.v = v};

	if (values_int(v, values_attribute(v, loop, "_thread_id"), &w.id) && w.id)
		values_each_thread(v, id_matches, &w);
	return w.tstate;
}

struct task_parts {
	uint64_t coro, name, loop;
	bool done;
};

static bool parts_of_c_task(struct values *v, uint64_t task, struct task_parts *ret)
{
	const struct python_asyncio *a = &v->py->asyncio;
	struct task_offsets o = {.coro = a->task_coro, .name = a->task_name};
	uint32_t shift = v->head - 16u, state = 0;

	if (v->l->minor < sizeof(offsets_by_minor) / sizeof(*offsets_by_minor)) {
		o = offsets_by_minor[v->l->minor];
		o.state += shift;
		o.coro += shift;
		o.name += o.name ? shift : 0;
	}
	if (!o.coro || (o.state && values_read(v, task + o.state, &state, sizeof(state))))
		return false;
	*ret = (struct task_parts){
		.coro = values_word(v, task + o.coro),
		.name = o.name ? values_word(v, task + o.name) : 0,
		.loop = values_word(v, task + v->head),
		.done = state != 0,
	};
	return state <= 2;
}

static bool parts_of(struct values *v, uint64_t task, struct task_parts *ret)
{
	struct value_class c;
	uint64_t state;

	if (!values_class(v, task, &c))
		return false;
	if (values_is_a(v, &c, "_asyncio.Task"))
		return parts_of_c_task(v, task, ret);
	state = values_attribute(v, task, "_state");
	*ret = (struct task_parts){
		.coro = values_attribute(v, task, "_coro"),
		.name = values_attribute(v, task, "_name"),
		.loop = values_attribute(v, task, "_loop"),
		.done = state && !values_equal(v, state, "PENDING"),
	};
	return true;
}

/* Returns whether these can be the parts of a task, whose offsets may be wrong. */
static bool are_plausible(struct values *v, const struct task_parts *p)
{
	struct value_class c;

	return values_class(v, p->coro, &c) && values_class(v, p->loop, &c);
}

static int read_task(struct reading_tasks *r, uint64_t task, const struct task_parts *p)
{
	struct python_tasks *to = r->to;
	struct python_task t = {.task = task, .tstate = r->tstate};

	t.frames = calloc(PYTHON_TASK_FRAMES_MAX, sizeof(*t.frames));
	t.awaits = calloc(PYTHON_TASK_AWAITS_MAX, sizeof(*t.awaits));
	if (!t.frames || !t.awaits) {
		python_task_deinit(&t);
		return -ENOMEM;
	}
	t.name = read_name(r->v, p->name);
	if (!t.tstate)
		t.tstate = thread_of_loop(r->v, p->loop);
	read_chain(r, &t, p->coro);
	to->v[to->n++] = t;
	return 0;
}

/* ---- all tasks --------------------------------------------------------------------------- */

static bool take_task(struct reading_tasks *r, uint64_t task)
{
	struct task_parts p;
	uint32_t at;

	if (!task || map_get(&r->known, task, &at))
		return true;
	r->err = map_put(&r->known, task, 0);
	if (r->err)
		return false;
	if (!parts_of(r->v, task, &p)) {
		r->to->unread++;
		return true;
	}
	if (p.done)
		return true;
	if (!are_plausible(r->v, &p) || r->to->n == PYTHON_TASKS_MAX)
		r->to->unread++;
	else
		r->err = read_task(r, task, &p);
	return !r->err;
}

static bool take_weak(void *ctx, uint64_t key, uint64_t ref)
{
	struct reading_tasks *r = ctx;

	(void)key;
	return take_task(r, values_word(r->v, ref + r->v->head));
}

static bool take_strong(void *ctx, uint64_t key, uint64_t task)
{
	(void)key;
	return take_task(ctx, task);
}

static void take_weak_set(struct reading_tasks *r, uint64_t set)
{
	uint64_t data = set ? values_attribute(r->v, set, "data") : 0;

	if (!data || !values_each(r->v, data, take_weak, r))
		r->unlisted = true;
}

/* The list is circular: next, previous; its head is a node, too. */
static void take_list(struct reading_tasks *r, uint64_t head)
{
	uint32_t node_at = r->v->py->asyncio.task_node;
	uint64_t node = values_word(r->v, head);

	for (unsigned int i = 0; node && node != head && i < 2 * PYTHON_TASKS_MAX; i++) {
		if (!is_task(r->v, node - node_at) || !take_task(r, node - node_at)) {
			r->to->unread++;
			return;
		}
		node = values_word(r->v, node);
	}
}

static void take_thread(void *ctx, uint64_t interp, uint64_t tstate)
{
	struct reading_tasks *r = ctx;

	(void)interp;
	r->tstate = tstate;
	take_list(r, tstate + r->v->py->asyncio.thread_tasks);
	r->tstate = 0;
}

static void take_interpreter(void *ctx, uint64_t interp)
{
	struct reading_tasks *r = ctx;
	struct values *v = r->v;
	uint64_t task_class = values_global(v, interp, "asyncio.tasks", "Task");

	if (!values_modules(v, interp))
		r->asyncio = r->unlisted = true; /* unknown */
	if (!task_class || r->err)
		return;
	r->asyncio = true;
	if (v->py->asyncio.task_coro)
		take_list(r, interp + v->py->asyncio.interp_tasks);
	/* In 3.6 only tasks that are not implemented in C have it. */
	if (v->l->minor < 7)
		take_weak_set(r,
			      values_get(v, values_word(v, task_class + TYPE_DICT), "_all_tasks"));
	else
		take_weak_set(r,
			      values_global(v, interp, "asyncio.tasks",
					    v->l->minor < 12 ? "_all_tasks" : "_scheduled_tasks"));
	if (v->l->minor >= 12)
		(void)values_each(v, values_global(v, interp, "asyncio.tasks", "_eager_tasks"),
				  take_strong, r);
}

static int read_all(struct values *v, void *ctx, struct python_tasks *ret)
{
	struct python_tasks t = {0};
	struct reading_tasks r = {.v = v, .to = &t};

	(void)ctx;
	t.v = calloc(PYTHON_TASKS_MAX, sizeof(*t.v));
	if (!t.v)
		return -ENOMEM;
	if (v->py->asyncio.task_coro)
		values_each_thread(v, take_thread, &r);
	values_each_interpreter(v, take_interpreter, &r);
	map_deinit(&r.known);
	line_tables_deinit(&r.lines);
	if (r.err) {
		python_tasks_deinit(&t);
		return r.err;
	}
	t.note = !r.asyncio ? PYTHON_TASKS_NO_MODULE
		 : r.unlisted || (v->l->minor >= 14 && !v->py->asyncio.task_coro) ||
				 (t.unread && !t.n)
			 ? PYTHON_TASKS_UNSUPPORTED
			 : PYTHON_TASKS_READ;
	*ret = t;
	return 0;
}

int python_tasks(const struct python *py, const struct memory *mem, struct python_tasks *ret)
{
	return task_readings(py, mem, read_all, NULL, ret);
}
