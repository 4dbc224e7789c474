// SPDX-License-Identifier: BSD-2-Clause
/* Answers about threads' names, local variables and tasks: see answer.h. */
#include <errno.h>
#include <stdlib.h>

#include "inspect/answer.h"
#include "inspect/pack.h"

#define UTF8_MAX 4u /* bytes of a character */

/* ---- names ------------------------------------------------------------------------------- */

char *answer_encode_names(const struct python_names *n, size_t *ret_size)
{
	struct pack p = {0};

	pack_number(&p, n->no_threading);
	pack_number(&p, n->moving);
	pack_number(&p, n->n);
	for (size_t i = 0; i < n->n; i++) {
		pack_number(&p, n->v[i].tstate);
		pack_text(&p, n->v[i].name);
	}
	return pack_take(&p, ret_size);
}

static int take_names(struct unpack *u, struct python_names *n)
{
	size_t want;

	n->no_threading = unpack_up_to(u, 1);
	n->moving = unpack_up_to(u, 1);
	want = unpack_up_to(u, TARGET_MAX_THREADS);
	n->v = calloc(want + 1, sizeof(*n->v));
	if (!n->v)
		return -ENOMEM;
	while (n->n < want && !u->err) {
		struct python_thread_name *t = &n->v[n->n++];

		t->tstate = unpack_address(u);
		t->name = unpack_text(u, PYTHON_NAME_MAX * UTF8_MAX);
		if (!t->name && !u->err)
			u->err = -EPROTO;
	}
	return unpack_end(u);
}

int answer_decode_names(const void *data, size_t size, struct python_names *ret)
{
	struct unpack u = {.at = data, .left = size};
	struct python_names n = {0};
	int r = take_names(&u, &n);

	if (r < 0)
		python_names_deinit(&n);
	else
		*ret = n;
	return r;
}

/* ---- local variables --------------------------------------------------------------------- */

char *answer_encode_locals(const struct python_locals *l, size_t *ret_size)
{
	struct pack p = {0};

	pack_number(&p, l->frame);
	pack_number(&p, l->code);
	pack_number(&p, l->more);
	pack_number(&p, l->n);
	for (size_t i = 0; i < l->n; i++) {
		pack_text(&p, l->v[i].name);
		pack_text(&p, l->v[i].value);
	}
	return pack_take(&p, ret_size);
}

static int take_locals(struct unpack *u, struct python_locals *l)
{
	size_t want;

	l->frame = unpack_address(u);
	l->code = unpack_address(u);
	l->more = unpack_up_to(u, UINT32_MAX);
	want = unpack_up_to(u, PYTHON_LOCALS_MAX);
	l->v = calloc(PYTHON_LOCALS_MAX, sizeof(*l->v));
	if (!l->v)
		return -ENOMEM;
	while (l->n < want && !u->err) {
		struct python_local *x = &l->v[l->n++];

		x->name = unpack_text(u, PYTHON_NAME_MAX * UTF8_MAX);
		unpack_field(u, x->value, sizeof(x->value));
		if (!x->name && !u->err)
			u->err = -EPROTO;
	}
	return unpack_end(u);
}

int answer_decode_locals(const void *data, size_t size, struct python_locals *ret)
{
	struct unpack u = {.at = data, .left = size};
	struct python_locals l = {0};
	int r = take_locals(&u, &l);

	if (r < 0)
		python_locals_deinit(&l);
	else
		*ret = l;
	return r;
}

/* ---- tasks ------------------------------------------------------------------------------- */

static void put_task(struct pack *p, const struct python_task *t)
{
	pack_number(p, t->task);
	pack_number(p, t->tstate);
	pack_text(p, t->name);
	pack_text(p, t->waits);
	pack_number(p, t->moving);
	pack_number(p, t->n);
	for (size_t i = 0; i < t->n; i++) {
		pack_number(p, t->frames[i].frame);
		pack_number(p, t->frames[i].code);
		pack_number(p, (uint32_t)t->frames[i].line);
	}
	pack_number(p, t->nawaits);
	for (size_t i = 0; i < t->nawaits; i++)
		pack_number(p, t->awaits[i]);
}

char *answer_encode_tasks(const struct python_tasks *t, size_t *ret_size)
{
	struct pack p = {0};

	pack_number(&p, t->note);
	pack_number(&p, t->unread);
	pack_number(&p, t->n);
	for (size_t i = 0; i < t->n; i++)
		put_task(&p, &t->v[i]);
	return pack_take(&p, ret_size);
}

static void take_frames(struct unpack *u, struct python_task *t)
{
	size_t want = unpack_up_to(u, PYTHON_TASK_FRAMES_MAX);

	t->frames = calloc(want + 1, sizeof(*t->frames));
	if (!t->frames)
		u->err = -ENOMEM;
	while (t->n < want && !u->err) {
		struct python_task_frame *f = &t->frames[t->n++];

		f->frame = unpack_address(u);
		f->code = unpack_address(u);
		f->line = (int32_t)unpack_up_to(u, UINT32_MAX);
	}
}

static void take_task(struct unpack *u, struct python_task *t)
{
	size_t want;

	t->task = unpack_address(u);
	t->tstate = unpack_address(u);
	t->name = unpack_text(u, PYTHON_NAME_MAX * UTF8_MAX);
	unpack_field(u, t->waits, sizeof(t->waits));
	t->moving = unpack_up_to(u, 1);
	take_frames(u, t);
	want = unpack_up_to(u, PYTHON_TASK_AWAITS_MAX);
	t->awaits = calloc(want + 1, sizeof(*t->awaits));
	if (!t->awaits)
		u->err = -ENOMEM;
	while (t->nawaits < want && !u->err)
		t->awaits[t->nawaits++] = unpack_address(u);
}

static int take_tasks(struct unpack *u, struct python_tasks *t)
{
	size_t want;

	t->note = (uint32_t)unpack_up_to(u, PYTHON_TASKS_NOTES - 1);
	t->unread = (uint32_t)unpack_up_to(u, UINT32_MAX);
	want = unpack_up_to(u, PYTHON_TASKS_MAX);
	t->v = calloc(want + 1, sizeof(*t->v));
	if (!t->v)
		return -ENOMEM;
	while (t->n < want && !u->err)
		take_task(u, &t->v[t->n++]);
	return unpack_end(u);
}

int answer_decode_tasks(const void *data, size_t size, struct python_tasks *ret)
{
	struct unpack u = {.at = data, .left = size};
	struct python_tasks t = {0};
	int r = take_tasks(&u, &t);

	if (r < 0)
		python_tasks_deinit(&t);
	else
		*ret = t;
	return r;
}
