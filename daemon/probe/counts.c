// SPDX-License-Identifier: BSD-2-Clause
/* Counting's maps: see counts.h. */
#include "probe/counts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#define BATCH_FIRST 4096u

/* Before 3.11; the opcode has the same number in all of them. */
#define YIELD_FROM 72
/* PyBytesObject.ob_sval */
#define BYTES_DATA 32
/* Since 3.11: RESUME's argument, of a frame that goes on after `yield from` or `await`. */
#define RESUME_DELEGATES 2

static void add_op(struct pyp_waiting *w, unsigned int *n, int16_t op)
{
	if (op != LAYOUT_NO_OPCODE && *n < PYP_WAITING_OPS)
		w->op[(*n)++] = (uint8_t)op;
}

struct pyp_waiting counts_waiting(const struct layout *l)
{
	struct pyp_waiting w = {.frame_instr = l->bpf.frame_instr};
	unsigned int n = 0;

	/* 3.8 and older show nobody but the one who throws. */
	if (l->minor < 9)
		return w;
	if (l->minor < 11) {
		w.style = PYP_WAITING_INDEX;
		w.index_unit = l->minor == 9 ? 1 : 2;
		w.code_bytes = l->code_bytes;
		w.bytes_data = BYTES_DATA;
		add_op(&w, &n, YIELD_FROM);
		return w;
	}
	w.style = l->minor < 13 ? PYP_WAITING_PREV : PYP_WAITING_NEXT;
	w.least_arg = RESUME_DELEGATES;
	add_op(&w, &n, l->op.resume);
	add_op(&w, &n, l->op.resume_quick);
	add_op(&w, &n, l->op.resume_check);
	add_op(&w, &n, l->op.resume_check_jit);
	add_op(&w, &n, l->op.instrumented_resume);
	return w;
}

struct pyp_restart counts_restart(const struct layout *l, uint64_t interp_head)
{
	if (!l->code_version)
		return (struct pyp_restart){0};
	return (struct pyp_restart){
		.interp_head = interp_head,
		.code_version = l->code_version,
		.interp_version = l->interp_version,
	};
}

void counts_forget(int state_fd)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info), zero = 0;
	_cleanup_free_ void *empty = NULL;

	if (bpf_obj_get_info_by_fd(state_fd, &info, &len) < 0)
		return;
	empty = calloc(1, info.value_size);
	if (empty)
		bpf_map_update_elem(state_fd, &zero, empty, BPF_ANY);
}

/* What one reading has brought so far. */
struct reading {
	struct pyp_edge *keys;
	uint64_t *values;
	size_t n, room;
};

static void reading_deinit(struct reading *r)
{
	free(r->keys);
	free(r->values);
}

static int reading_grow(struct reading *r)
{
	size_t room = r->room ? 2 * r->room : BATCH_FIRST;
	struct pyp_edge *keys = reallocarray(r->keys, room, sizeof(*keys));
	uint64_t *values;

	if (!keys)
		return -ENOMEM;
	r->keys = keys;
	values = reallocarray(r->values, room, sizeof(*values));
	if (!values)
		return -ENOMEM;
	r->values = values;
	r->room = room;
	return 0;
}

/* Buckets are read whole: where there is too little room for the next one, the kernel asks for
 * more. */
static int reading_all(int fd, struct reading *r)
{
	uint32_t at = 0, count;
	bool begun = false;
	int err = reading_grow(r);

	while (!err) {
		count = (uint32_t)(r->room - r->n);
		err = bpf_map_lookup_batch(fd, begun ? &at : NULL, &at, r->keys + r->n,
					   r->values + r->n, &count, NULL);
		if (err == -ENOSPC || err == 0 || err == -ENOENT) {
			if (err != -ENOSPC)
				r->n += count;
			begun |= err == 0;
			if (err == -ENOENT)
				return 0;
			err = r->room - r->n < BATCH_FIRST || err ? reading_grow(r) : 0;
		}
	}
	return err;
}

int counts_read(int edges_fd, struct probe_count **ret, size_t *ret_n)
{
	_cleanup_(reading_deinit) struct reading r = {0};
	struct probe_count *v;
	int err = reading_all(edges_fd, &r);

	if (err)
		return err;
	v = calloc(r.n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < r.n; i++)
		v[i] = (struct probe_count){.edge = r.keys[i], .calls = r.values[i]};
	*ret = v;
	*ret_n = r.n;
	return 0;
}
