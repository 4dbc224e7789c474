// SPDX-License-Identifier: BSD-2-Clause
/* Fills the frames of dumps: see frames.h. */
#include "dump/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOCALS_ROUNDS 4

void frames_deinit(struct frames *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		code_names_deinit(&f->v[i]);
	free(f->v);
	map_deinit(&f->at);
}

static const struct code_names *names_of(struct frames *f, uint64_t code)
{
	static const struct code_names unknown;
	uint32_t at;

	if (map_get(&f->at, code, &at))
		return &f->v[at];
	if (f->n == f->room) {
		uint32_t want = f->room ? 2 * f->room : 64;
		struct code_names *v = reallocarray(f->v, want, sizeof(*v));

		if (!v)
			return &unknown;
		f->v = v;
		f->room = want;
	}
	f->v[f->n] = unknown;
	(void)inspect_code(f->in, code, &f->v[f->n]);
	(void)map_put(&f->at, code, f->n);
	return &f->v[f->n++];
}

static char *shown(const char *name)
{
	return strdup(name ? name : "?");
}

int frames_fill(struct frames *f, uint64_t code, struct dump_frame *ret, bool *ret_known)
{
	const struct code_names *c = names_of(f, code);

	ret->filename = shown(c->filename);
	ret->name = shown(c->qualname ? c->qualname : c->name);
	if (ret_known)
		*ret_known = c->name != NULL;
	return ret->filename && ret->name ? 0 : -ENOMEM;
}

static bool same_locals(const struct python_locals *a, const struct python_locals *b)
{
	if (a->n != b->n || a->code != b->code)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->v[i].name, b->v[i].name) != 0 ||
		    strcmp(a->v[i].value, b->v[i].value) != 0)
			return false;
	return true;
}

/* Reads until two successive readings agree, since the program may change them meanwhile. */
void frames_fill_locals(struct frames *f, uint64_t frame, uint64_t code, struct dump_frame *to)
{
	struct python_locals now;
	bool same = false;

	if (!f->locals || to->moving)
		return;
	f->locals--;
	if (inspect_locals(f->in, frame, &now) < 0)
		return;
	for (unsigned int i = 0; i < LOCALS_ROUNDS && !same; i++) {
		struct python_locals again;

		if (inspect_locals(f->in, frame, &again) < 0)
			break;
		same = same_locals(&now, &again);
		python_locals_deinit(&now);
		now = again;
	}
	to->locals_state = now.code != code ? DUMP_LOCALS_GONE
			   : same	    ? DUMP_LOCALS_READ
					    : DUMP_LOCALS_MOVING;
	if (now.code != code)
		python_locals_deinit(&now);
	to->locals = now;
}
