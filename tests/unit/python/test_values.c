// SPDX-License-Identifier: BSD-2-Clause
/*
 * python/values and what uses it: representations of ints in memory that the test defines; memory
 * full of pointers to anywhere ends without names, variables and tasks.
 */
#include <string.h>

#include "harness/heap.h"
#include "harness/test.h"
#include "python/details.h"
#include "python/values.h"

TestSuite(values);

static uint64_t make_type(struct heap *h, const char *name, uint64_t flags, uint64_t meta)
{
	uint64_t shift = h->layout->bpf.object_type - 8u;
	uint64_t type = heap_alloc(h, 512), text = heap_alloc(h, 32);

	heap_put(h, text, name, strlen(name));
	heap_u64(h, type + h->layout->bpf.object_type, meta ? meta : type);
	heap_u64(h, type + shift + 24, text);
	heap_u64(h, type + shift + 168, flags);
	return type;
}

/* An int of these digits */
static uint64_t make_int(struct heap *h, uint64_t type, uint64_t n, uint32_t digit, bool negative)
{
	uint64_t addr = heap_alloc(h, 64), head = h->layout->bpf.object_type + 8u;

	heap_u64(h, addr + h->layout->bpf.object_type, type);
	if (h->layout->minor >= 12)
		heap_u64(h, addr + head, n << 3 | (negative ? 2 : n ? 0 : 1));
	else
		heap_u64(h, addr + head, negative ? 0 - n : n);
	for (uint64_t i = 0; i < n; i++)
		heap_u32(h, addr + head + 8 + 4 * i, digit);
	return addr;
}

static void check(struct values *v, uint64_t object, const char *want)
{
	char text[PYTHON_REPR_MAX];

	values_refresh(v); /* the object is new */
	values_repr(v, object, text, sizeof(text));
	cr_assert_str_eq(text, want, "3.%d: %s, not %s", v->l->minor, text, want);
}

Test(values, ints)
{
	for (const struct layout *const *l = layout_tables; *l; l++) {
		struct heap *h = heap_new(*l);
		struct python py = {.layout = **l, .minor = (*l)->minor};
		struct memory mem = heap_memory(h);
		struct values *v = values_new(&py, &mem, 1000);
		uint64_t type = make_type(h, "type", VALUE_TYPE, 0);
		uint64_t of_int = make_type(h, "int", VALUE_INT, type), n;
		uint64_t of_bool = make_type(h, "bool", VALUE_INT, type), object;

		check(v, make_int(h, of_int, 0, 0, false), "0");
		check(v, make_int(h, of_int, 1, 5, true), "-5");
		check(v, make_int(h, of_int, 2, 1, false), "1073741825");
		check(v, make_int(h, of_int, 5, 1, false), "<int of up to 150 bits>");
		check(v, make_int(h, of_bool, 1, 1, false), "True");
		check(v, make_int(h, of_bool, 0, 0, false), "False");
		check(v, type + 1, "?");
		check(v, make_int(h, of_int + 8, 1, 1, false), "?");
		object = make_int(h, of_int, 1, 7, false);
		values_refresh(v);
		cr_assert(values_int(v, object, &n) && n == 7);
		object = make_int(h, of_int, 4, 1, false);
		values_refresh(v);
		cr_assert(!values_int(v, object, &n));
		values_free(v);
		free(h);
	}
	check_no_leaks();
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 20;
}

/* Most words are addresses of the memory itself, the others small numbers. */
static void fill(struct heap *h, uint64_t seed)
{
	for (size_t i = 0; i + 8 <= HEAP_SIZE; i += 8) {
		uint64_t r = next_random(&seed);

		heap_u64(h, HEAP_BASE + i,
			 r % 8 ? HEAP_BASE + (r >> 3) % HEAP_SIZE / 8 * 8 : (r >> 3) % 1000);
	}
}

static void read_all(const struct python *py, const struct memory *mem)
{
	struct python_names names;
	struct python_locals locals;
	struct python_tasks tasks;

	if (python_names(py, mem, &names) == 0)
		python_names_deinit(&names);
	if (python_locals(py, mem, HEAP_BASE + 4096, &locals) == 0)
		python_locals_deinit(&locals);
	if (python_tasks(py, mem, &tasks) == 0)
		python_tasks_deinit(&tasks);
}

Test(values, memory_full_of_pointers)
{
	for (const struct layout *const *l = layout_tables; *l; l++)
		for (uint64_t seed = 1; seed <= 4; seed++) {
			struct heap *h = heap_new(*l);
			struct memory mem = heap_memory(h);
			struct python py = {.layout = **l, .minor = (*l)->minor};

			heap_alloc(h, HEAP_SIZE - 64);
			fill(h, seed);
			py.runtime = HEAP_BASE + 1024;
			if ((*l)->minor >= 14)
				py.asyncio = (struct python_asyncio){136, 128, 152, 864, 880};
			read_all(&py, &mem);
			free(h);
		}
	check_no_leaks();
}
