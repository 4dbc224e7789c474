// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of threads: threading._active maps thread ids (PyThreadState.thread_id) to Thread objects,
 * which have their name in the attribute _name (3.6 to 3.15).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"
#include "python/details.h"
#include "python/values.h"

#define MAX_READS 100000u
#define ROUNDS	  5u

struct reading_names {
	struct values *v;
	struct python_names *names;
	uint64_t interp;
	struct map objects; /* id of a thread → index */
	uint64_t *threads;  /* addresses of Thread objects */
	uint32_t n, room;
	int err;
};

static int add_object(struct reading_names *r, uint64_t id, uint64_t object)
{
	uint64_t *v = array_room(r->threads, &r->room, r->n + 1, 64, sizeof(*v));

	if (!v)
		return -ENOMEM;
	r->threads = v;
	r->threads[r->n] = object;
	return map_put(&r->objects, id, r->n++);
}

static bool take_object(void *ctx, uint64_t key, uint64_t value)
{
	struct reading_names *r = ctx;
	uint64_t id;

	if (values_int(r->v, key, &id))
		r->err = add_object(r, id, value);
	return !r->err && r->n < TARGET_MAX_THREADS;
}

static int add_name(struct python_names *names, uint64_t tstate, char *name)
{
	struct python_thread_name *v = reallocarray(names->v, names->n + 1, sizeof(*v));

	if (!v) {
		free(name);
		return -ENOMEM;
	}
	names->v = v;
	names->v[names->n++] = (struct python_thread_name){.tstate = tstate, .name = name};
	return 0;
}

static void name_thread(void *ctx, uint64_t interp, uint64_t tstate)
{
	struct reading_names *r = ctx;
	uint64_t id = values_word(r->v, tstate + r->v->l->ts_thread_id);
	char *name = NULL;
	uint32_t at;

	if (r->err || interp != r->interp || !id || !map_get(&r->objects, id, &at))
		return;
	name = values_str(r->v, values_attribute(r->v, r->threads[at], "_name"), PYTHON_NAME_MAX);
	if (name)
		r->err = add_name(r->names, tstate, name);
}

/* Each interpreter has its own module. */
static void name_threads_of(void *ctx, uint64_t interp)
{
	struct reading_names *r = ctx;
	uint64_t active = values_global(r->v, interp, "threading", "_active");

	if (!values_modules(r->v, interp))
		r->names->no_threading = false; /* unknown */
	if (r->err || !active)
		return;
	r->names->no_threading = false;
	r->interp = interp;
	r->n = 0;
	map_clear(&r->objects);
	(void)values_each_item(r->v, active, take_object, r);
	if (!r->err)
		values_each_thread(r->v, name_thread, r);
}

static int read_once(struct values *v, struct python_names *ret)
{
	struct python_names names = {.no_threading = true};
	struct reading_names r = {.v = v, .names = &names};

	values_refresh(v);
	values_each_interpreter(v, name_threads_of, &r);
	map_deinit(&r.objects);
	free(r.threads);
	if (r.err)
		python_names_deinit(&names);
	else
		*ret = names;
	return r.err;
}

static bool same_names(const struct python_names *a, const struct python_names *b)
{
	if (a->n != b->n || a->no_threading != b->no_threading)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (a->v[i].tstate != b->v[i].tstate || strcmp(a->v[i].name, b->v[i].name) != 0)
			return false;
	return true;
}

int python_names(const struct python *py, const struct memory *mem, struct python_names *ret)
{
	_cleanup_(values_freep) struct values *v = values_new(py, mem, MAX_READS);
	struct python_names now, before;
	int r = v ? read_once(v, &now) : -ENOMEM;

	if (r < 0)
		return r;
	now.moving = true;
	for (unsigned int i = 1; now.moving && i < ROUNDS; i++) {
		before = now;
		r = read_once(v, &now);
		if (r == 0)
			now.moving = !same_names(&now, &before);
		python_names_deinit(&before);
		if (r < 0)
			return r;
	}
	*ret = now;
	return 0;
}

void python_names_deinit(struct python_names *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->v[i].name);
	free(n->v);
	*n = (struct python_names){0};
}
