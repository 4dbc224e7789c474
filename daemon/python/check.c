// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks that a layout's frames and code objects are real. Threads run meanwhile, so a single
 * attempt may read an inconsistent stack; with a wrong layout all attempts fail.
 */
#include <errno.h>
#include <time.h>

#include "python/inside.h"

#define TRIES	32
#define LOOK_AT 64 /* frames of each stack to check, starting with the outermost */

enum verdict { NOTHING, WRONG, RIGHT };

static bool is_code(const struct python *py, const struct memory *mem, uint64_t code,
		    uint64_t code_type)
{
	uint64_t type;

	return memory_read_u64(mem, code + py->layout.bpf.object_type, &type) == 0 &&
	       type == code_type;
}

/* Outermost frames change least: the last one and most of the others must be right. */
static enum verdict judge(const struct python *py, const struct memory *mem,
			  const struct python_stack *st, uint64_t code_type)
{
	size_t n = st->n < LOOK_AT ? st->n : LOOK_AT, good = 0;

	if (!st->n)
		return st->truncated ? WRONG : NOTHING;
	for (size_t i = 0; i < n; i++)
		good += is_code(py, mem, st->frames[st->n - 1 - i].code, code_type);
	if (st->truncated || !is_code(py, mem, st->frames[st->n - 1].code, code_type))
		return WRONG;
	return 2 * good > n ? RIGHT : WRONG;
}

static int look(const struct python *py, const struct memory *mem, uint64_t code_type,
		enum verdict *ret)
{
	struct python_stack *v = NULL;
	size_t n = 0;
	int r = python_stacks(py, mem, 0, &v, &n, NULL);

	if (r < 0)
		return r;
	*ret = NOTHING;
	for (size_t i = 0; i < n && *ret != RIGHT; i++) {
		enum verdict one = judge(py, mem, &v[i], code_type);

		if (one > *ret)
			*ret = one;
	}
	python_stacks_free(v, n);
	return 0;
}

int python_check(const struct python *py, const struct memory *mem, pid_t pid, struct diag *diag)
{
	const struct timespec pause = {.tv_nsec = 500000};
	struct image_symbol type;
	bool wrong = false;

	if (!py->runtime || py->layout.runtime_interpreters_head == LAYOUT_NONE ||
	    image_symbol(py->image, "PyCode_Type", &type) < 0)
		return 0;
	for (int i = 0; i < TRIES; i++) {
		enum verdict verdict = NOTHING;
		int r = look(py, mem, type.vaddr + py->bias, &verdict);

		if (r < 0)
			return diag_errno(diag, -r, "cannot read the stacks of process %d", pid);
		if (verdict == RIGHT)
			return 0;
		wrong |= verdict == WRONG;
		nanosleep(&pause, NULL);
	}
	if (!wrong)
		return 0;
	return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE,
			"please report this build, with the output of `pyprofctl doctor`",
			"Python %s in process %d has an unknown memory layout: its frames do "
			"not point to code objects",
			py->version, pid);
}
