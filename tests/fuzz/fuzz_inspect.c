// SPDX-License-Identifier: BSD-2-Clause
/* inspect/answer with arbitrary bytes: it must not read past the end, and accepted values must be
 * in their ranges. The first byte selects the type of answer. */
#include <stdlib.h>
#include <string.h>

#include "inspect/answer.h"
#include "inspect/inspect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

static void find(const uint8_t *data, size_t size)
{
	struct inspect_result r = {0};

	if (answer_decode_find(data, size, 42, NULL, &r, NULL) < 0)
		return;
	check(r.same || (r.python && r.python->via[0] && r.plan.nsites <= PYP_MAX_SITES));
	for (unsigned int i = 0; i < r.plan.nsites; i++)
		check(r.plan.sites[i].reg < 16 && strlen(r.plan.sites[i].role) < 32);
	inspect_result_deinit(&r);
}

static void stacks(const uint8_t *data, size_t size)
{
	struct python_stack *v;
	size_t n;

	if (answer_decode_stacks(data, size, &v, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		check(v[i].n <= PYP_CHAIN_MAX_DEPTH && v[i].tid >= 0);
	python_stacks_free(v, n);
}

static void names(const uint8_t *data, size_t size)
{
	struct code_names c;

	if (answer_decode_code(data, size, &c) < 0)
		return;
	check(c.filename && c.name && strlen(c.filename) + strlen(c.name) <= size);
	code_names_deinit(&c);
}

static void lines(const uint8_t *data, size_t size)
{
	struct code_lines c;

	if (answer_decode_lines(data, size, &c) < 0)
		return;
	check(c.n <= CODE_LINES_MAX && code_lines_find(&c, 0) >= 0);
	code_lines_deinit(&c);
}

static void census(const uint8_t *data, size_t size)
{
	struct census c;

	if (answer_decode_census(data, size, &c) < 0)
		return;
	check(c.n <= CENSUS_TYPES_MAX && c.torn <= c.lists);
	census_deinit(&c);
}

static void details(const uint8_t *data, size_t size)
{
	struct python_names n;
	struct python_locals l;
	struct python_tasks t;

	if (answer_decode_names(data, size, &n) == 0) {
		for (size_t i = 0; i < n.n; i++)
			check(strlen(n.v[i].name) <= size);
		python_names_deinit(&n);
	}
	if (answer_decode_locals(data, size, &l) == 0) {
		check(l.n <= PYTHON_LOCALS_MAX);
		python_locals_deinit(&l);
	}
	if (answer_decode_tasks(data, size, &t) == 0) {
		check(t.n <= PYTHON_TASKS_MAX && t.note < PYTHON_TASKS_NOTES);
		python_tasks_deinit(&t);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;
	char text[256];
	bool misses;

	if (!size)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	if (data[0] == UINT8_MAX)
		details(copy, size - 1);
	else if (data[0] == UINT8_MAX - 1)
		lines(copy, size - 1);
	else if (data[0] % 5 == 0)
		find(copy, size - 1);
	else if (data[0] % 5 == 1)
		stacks(copy, size - 1);
	else if (data[0] % 5 == 2)
		names(copy, size - 1);
	else if (data[0] % 5 == 4)
		census(copy, size - 1);
	else
		(void)answer_decode_hidden(copy, size - 1, &misses, text, sizeof(text));
	free(copy);
	return 0;
}
