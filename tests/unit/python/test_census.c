// SPDX-License-Identifier: BSD-2-Clause
/*
 * python/census: lists of objects in memory defined by the test, for every version: valid ones, and
 * damaged ones.
 */
#include <errno.h>
#include <string.h>

#include "harness/heap.h"
#include "harness/test.h"
#include "python/census.h"

TestSuite(census);

#define FLAG_TYPE (1u << 31)
#define FLAG_LIST (1u << 25)
#define NODES	  5

struct scene {
	struct heap *h;
	struct python py;
	uint64_t state, heads[4], type_type, plain, list, nodes[NODES];
};

static uint64_t u64_of(const struct heap *h, uint64_t addr)
{
	struct memory mem = heap_memory(h);
	uint64_t v;

	assert_ok(memory_read_u64(&mem, addr, &v));
	return v;
}

static uint64_t make_type(struct scene *s, const char *name, uint32_t flags, uint64_t base)
{
	struct heap *h = s->h;
	uint64_t type = heap_alloc(h, 512), text = heap_alloc(h, 64);

	heap_put(h, text, name, strlen(name));
	heap_u64(h, type, 1);
	heap_u64(h, type + 8, s->type_type ? s->type_type : type);
	heap_u64(h, type + 24, text);
	heap_u64(h, type + 32, base);
	heap_u64(h, type + 168, flags);
	return type;
}

/* Appends a node to the list. */
static uint64_t append(struct scene *s, unsigned int list, uint64_t type)
{
	struct heap *h = s->h;
	uint64_t node = heap_alloc(h, 128), head = s->heads[list];
	uint64_t last = u64_of(h, head + 8);

	heap_u64(h, last, node);
	heap_u64(h, node, head);
	heap_u64(h, node + 8, last);
	heap_u64(h, head + 8, node);
	heap_u64(h, node + h->layout->gc_head, 1);
	heap_u64(h, node + h->layout->gc_head + 8, type);
	return node;
}

static void make_lists(struct scene *s, uint64_t interp)
{
	const struct layout *l = s->h->layout;
	uint64_t pointer = 0;

	s->state = l->gc_place == LAYOUT_GC_INTERPRETER ? interp + l->gc_state
		   : l->gc_place == LAYOUT_GC_RUNTIME	? s->py.runtime + l->gc_state
							: heap_alloc(s->h, 256);
	if (l->gc_place == LAYOUT_GC_POINTER) {
		pointer = heap_alloc(s->h, 8);
		heap_u64(s->h, pointer, s->state);
		s->py.gc_generation0 = pointer;
	}
	for (unsigned int i = 0; i < (l->minor == 6 ? 3u : 4u); i++) {
		s->heads[i] = s->state + 8 + i * (uint64_t)(l->gc_head == 32 ? 40 : 28);
		heap_u64(s->h, s->heads[i], s->heads[i]);
		heap_u64(s->h, s->heads[i] + 8, s->heads[i]);
	}
}

/* Three plain objects and a list in the first list, a plain one in the second. */
static struct scene scene_new(const struct layout *l)
{
	struct scene s = {.h = heap_new(l), .py = {.layout = *l, .minor = l->minor}};
	uint64_t code_type, interp;

	s.py.runtime = heap_runtime(s.h, 0);
	interp = u64_of(s.h, s.py.runtime + l->runtime_interpreters_head);
	s.type_type = make_type(&s, "type", FLAG_TYPE, 400);
	code_type = make_type(&s, "code", 0, 100);
	s.py.code_type = code_type;
	s.plain = make_type(&s, "a.Plain\n", 0, 32);
	s.list = make_type(&s, "list", FLAG_LIST, 40);
	make_lists(&s, interp);
	for (unsigned int i = 0; i < NODES; i++)
		s.nodes[i] = append(&s, i == 4, i == 3 ? s.list : s.plain);
	heap_u64(s.h, s.nodes[3] + l->gc_head + 32, 10); /* the list's allocated size */
	return s;
}

static struct census census_of(const struct scene *s)
{
	struct memory mem = heap_memory(s->h);
	struct census c = {0};
	struct diag diag = {0};

	assert_diag_ok(python_census(&s->py, &mem, CENSUS_NS, &c, &diag), &diag);
	return c;
}

Test(census, every_layout)
{
	for (const struct layout *const *l = layout_tables; *l; l++) {
		struct scene s;
		struct census c;
		const uint64_t head = (*l)->gc_head;

		if (!(*l)->gc_size || (*l)->abi & LAYOUT_ABI_FREE_THREADED)
			continue;
		s = scene_new(*l);
		c = census_of(&s);
		cr_assert(c.n == 2 && c.objects == 5 && c.interpreters == 1, "3.%d", (*l)->minor);
		cr_assert(c.lists == ((*l)->minor == 6 ? 3 : 4) && !c.torn && c.passes == 1);
		cr_assert_str_eq(c.types[0].name, "a.Plain?");
		cr_assert(c.types[0].count == 4 && c.types[0].bytes == 4 * (head + 32));
		cr_assert_str_eq(c.types[1].name, "list");
		cr_assert(c.types[1].count == 1 && c.types[1].bytes == head + 40 + 80);
		cr_assert_eq(c.bytes, c.types[0].bytes + c.types[1].bytes);
		census_deinit(&c);
		free(s.h);
	}
	check_no_leaks();
}

/* An invalid link: the rest is counted from the other end. */
Test(census, a_link_is_cut)
{
	struct scene s = scene_new(layout_find(3, 11));
	struct census c;

	heap_u64(s.h, s.nodes[1], 0);
	c = census_of(&s);
	cr_assert(c.objects == 5 && !c.torn);
	census_deinit(&c);
	heap_u64(s.h, s.nodes[2] + 8, 0x1000); /* in both directions */
	c = census_of(&s);
	cr_assert(c.torn == 1 && c.passes == 3 && c.objects >= 3);
	census_deinit(&c);
	free(s.h);
	check_no_leaks();
}

/*
 * A list whose links form a cycle without the head: the census terminates, and counts no object
 * twice.
 */
Test(census, a_circle)
{
	struct scene s = scene_new(layout_find(3, 13));
	struct census c;

	heap_u64(s.h, s.nodes[3], s.nodes[1]);
	c = census_of(&s);
	cr_assert_eq(c.objects, 5);
	census_deinit(&c);
	free(s.h);
	check_no_leaks();
}

/* Objects that were freed meanwhile, and memory that is not an object. */
Test(census, no_objects)
{
	struct scene s = scene_new(layout_find(3, 9));
	struct census c;

	heap_u64(s.h, s.nodes[1] + 16, 0); /* its reference count is 0 */
	c = census_of(&s);
	cr_assert_eq(c.objects, 4);
	census_deinit(&c);
	heap_u64(s.h, s.nodes[1] + 16, 1);
	heap_u64(s.h, s.nodes[1] + 24, s.nodes[0] + 16); /* its type is not a type */
	c = census_of(&s);
	cr_assert_eq(c.objects, 4);
	census_deinit(&c);
	free(s.h);
	check_no_leaks();
}

/* What was not reached in time is reported, and not looked for again. */
Test(census, time_is_limited)
{
	struct scene s = scene_new(layout_find(3, 11));
	struct memory mem = heap_memory(s.h);
	struct census c = {0};
	struct diag diag = {0};

	assert_diag_ok(python_census(&s.py, &mem, 0, &c, &diag), &diag);
	cr_assert(c.limited && c.passes == 1 && c.torn > 0 && c.objects == 0);
	census_deinit(&c);
	free(s.h);
	check_no_leaks();
}

/* Sizes beyond the memory of any machine are refused. */
Test(census, absurd_size)
{
	struct scene s = scene_new(layout_find(3, 12));
	struct census c;

	heap_u64(s.h, s.nodes[3] + 16 + 32, UINT64_MAX >> 1);
	c = census_of(&s);
	cr_assert_eq(c.types[1].bytes, 16 + 40);
	census_deinit(&c);
	free(s.h);
	check_no_leaks();
}

Test(census, no_lists)
{
	struct scene s = scene_new(layout_find(3, 11));
	struct memory mem = heap_memory(s.h);
	struct diag diag = {0};
	struct census c;

	for (unsigned int i = 0; i < 4; i++)
		heap_u64(s.h, s.heads[i], 0);
	assert_err(python_census(&s.py, &mem, CENSUS_NS, &c, &diag), -ENOENT);
	s.py.layout.abi |= LAYOUT_ABI_FREE_THREADED;
	assert_err(python_census(&s.py, &mem, CENSUS_NS, &c, &diag), -EOPNOTSUPP);
	cr_assert_eq(diag.exit, PYP_EXIT_UNTRACEABLE);
	free(s.h);
	check_no_leaks();
}
