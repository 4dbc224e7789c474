// SPDX-License-Identifier: BSD-2-Clause
/* C functions by address: see natives.h. */
#include "stack/natives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8_clean.h"
#include "snapshot/snapshot.h"

#define UNNAMED "<native code>"
#define ROW_MAX (NATIVE_FILE_MAX + 32)
#define PAGE	4096u

void natives_deinit(struct natives *n)
{
	free(n->v);
	*n = (struct natives){0};
}

void natives_forget(struct natives *n)
{
	n->n = n->failures = 0;
}

/* Returns the first range that ends above the address. */
static uint32_t range_at(const struct natives *n, uint64_t address)
{
	uint32_t low = 0, high = n->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (n->v[mid].end <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool reserve(struct natives *n)
{
	uint32_t cap = n->cap ? 2 * n->cap : 64;
	struct native_range *v;

	if (n->n < n->cap)
		return true;
	v = n->n < NATIVES_MAX ? reallocarray(n->v, cap, sizeof(*v)) : NULL;
	if (!v)
		return false;
	n->v = v;
	n->cap = cap;
	return true;
}

/* Inserts at index i, limited to the space between its neighbours. */
static void insert(struct natives *n, uint32_t i, struct native_range r)
{
	if (!reserve(n))
		return;
	if (i && r.start < n->v[i - 1].end)
		r.start = n->v[i - 1].end;
	if (i < n->n && r.end > n->v[i].start)
		r.end = n->v[i].start;
	memmove(n->v + i + 1, n->v + i, (n->n - i) * sizeof(*n->v));
	n->v[i] = r;
	n->n++;
}

static uint32_t row(struct funcs *funcs, const char *name)
{
	return funcs_intern(funcs, &(struct func_identity){
					   .filename = SNAPSHOT_NATIVE_FILE,
					   .name = name,
				   });
}

static uint32_t named_row(struct funcs *funcs, const struct native_code *code)
{
	char raw[ROW_MAX], name[ROW_MAX];

	if (!code->file[0])
		return row(funcs, UNNAMED);
	snprintf(raw, sizeof(raw), "<native code in %s>", code->file);
	return row(funcs, utf8_clean(raw, name, sizeof(name)));
}

uint32_t natives_func(struct natives *n, struct funcs *funcs, uint64_t address)
{
	const uint32_t i = range_at(n, address);
	/* A failed lookup is not repeated for the whole page. */
	struct native_code code = {.start = address & ~(uint64_t)(PAGE - 1)};
	struct native_range r;

	if (i < n->n && n->v[i].start <= address)
		return n->v[i].func;
	if (!n->find || n->failures >= NATIVES_FAILURES || n->n >= NATIVES_MAX)
		return row(funcs, UNNAMED);
	code.end = code.start + PAGE;
	if (n->find(n->ctx, address, &code) < 0)
		n->failures++;
	r = (struct native_range){
		.start = code.start, .end = code.end, .func = named_row(funcs, &code)};
	insert(n, i, r);
	return r.func;
}
