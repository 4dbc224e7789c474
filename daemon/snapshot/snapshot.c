// SPDX-License-Identifier: BSD-2-Clause
/* Memory and validation of snapshots: see snapshot.h. */
#include "snapshot/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitizer.h"
#include "base/wait.h"

#define ARENA_CHUNK ((size_t)64 * 1024)

/*
 * Chunks of the arena, newest first. Small allocations share a chunk, large ones have their own. Under
 * AddressSanitizer all have their own, of the exact size, so that it detects accesses beyond the end.
 */
struct chunk {
	struct chunk *next;
	size_t used, size;
	alignas(max_align_t) unsigned char data[];
};

struct snapshot *snapshot_new(void)
{
	return calloc(1, sizeof(struct snapshot));
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	for (struct chunk *c = s->arena, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(s);
}

static struct chunk *chunk_new(size_t size)
{
	struct chunk *c;
	size_t total;

	if (__builtin_add_overflow(size, sizeof(*c), &total))
		return NULL;
	c = calloc(1, total);
	if (c)
		c->size = size;
	return c;
}

void *snapshot_alloc(struct snapshot *s, size_t n, size_t size)
{
	const size_t align = SANITIZER_ADDRESS ? 1 : alignof(max_align_t);
	const size_t shared = SANITIZER_ADDRESS ? 0 : ARENA_CHUNK;
	struct chunk *c = s->arena;
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes) ||
	    __builtin_add_overflow(bytes, align - 1, &bytes))
		return NULL;
	bytes &= ~(align - 1);
	if (!c || !shared || c->size - c->used < bytes) {
		struct chunk *fresh = chunk_new(bytes > shared / 4 ? bytes : shared);

		if (!fresh)
			return NULL;
		if (c && fresh->size == bytes) {
			/*
			 * A large chunk goes second, so that the first chunk's free space stays in
			 * use.
			 */
			fresh->next = c->next;
			c->next = fresh;
		} else {
			fresh->next = c;
			s->arena = fresh;
		}
		c = fresh;
	}
	p = c->data + c->used;
	c->used += bytes;
	return p;
}

void *snapshot_grow(struct snapshot *s, struct snapshot_room *room, const void *array,
		    uint32_t have, uint32_t n, size_t size)
{
	uint32_t total, cap;
	void *grown;

	if (__builtin_add_overflow(have, n, &total))
		return NULL;
	if (array && room->array == array && total <= room->cap)
		return (void *)array;
	cap = have <= UINT32_MAX / 2 && have * 2 > total ? have * 2 : total;
	grown = snapshot_alloc(s, cap, size);
	if (grown && have && array)
		memcpy(grown, array, have * size);
	if (grown)
		*room = (struct snapshot_room){.array = grown, .cap = cap};
	return grown;
}

size_t snapshot_bytes(const struct snapshot *s)
{
	size_t sum = sizeof(*s);

	for (const struct chunk *c = s->arena; c; c = c->next)
		sum += sizeof(*c) + c->size;
	return sum;
}

const char *snapshot_strn(struct snapshot *s, const char *str, size_t n)
{
	char *copy;

	if (!str || n == SIZE_MAX)
		return NULL;
	copy = snapshot_alloc(s, n + 1, 1);
	if (copy)
		memcpy(copy, str, n);
	return copy;
}

const char *snapshot_str(struct snapshot *s, const char *str)
{
	return str ? snapshot_strn(s, str, strlen(str)) : NULL;
}

int snapshot_reserve_columns(struct snapshot *s, uint64_t columns, uint32_t n)
{
	for (int c = 0; c < COLUMNS; c++) {
		uint64_t *old = s->columns[c];

		if (!old && !(columns & COLUMN_BIT(c)))
			continue;
		s->columns[c] = snapshot_alloc(s, (size_t)n + 1, sizeof(*s->columns[c]));
		if (!s->columns[c])
			return -ENOMEM;
		if (old)
			memcpy(s->columns[c], old, (n < s->nnodes ? n : s->nnodes) * sizeof(*old));
	}
	return 0;
}

void snapshot_add_columns(struct snapshot *to, uint32_t into, const struct snapshot *from,
			  uint32_t node)
{
	for (int c = 0; c < COLUMNS; c++)
		if (from->columns[c])
			column_merge(c, &to->columns[c][into], from->columns[c][node]);
}

uint64_t snapshot_columns(const struct snapshot *s)
{
	uint64_t set = 0;

	for (int c = 0; c < COLUMNS; c++)
		if (s->columns[c])
			set |= COLUMN_BIT(c);
	return set;
}

const struct snapshot_fact snapshot_facts[] = {
#define PYP_X(member, key, label, text)                                                            \
	{key, label, text, offsetof(struct snapshot_target, member)},
	SNAPSHOT_FACTS(PYP_X)
#undef PYP_X
		{NULL, NULL, NULL, 0},
};

uint64_t *snapshot_fact(struct snapshot_target *t, const struct snapshot_fact *fact)
{
	return (uint64_t *)((char *)t + fact->offset);
}

uint64_t snapshot_fact_of(const struct snapshot_target *t, const struct snapshot_fact *fact)
{
	return *(const uint64_t *)((const char *)t + fact->offset);
}

const char *const snapshot_coro_kinds[SNAPSHOT_CORO_KINDS] = {
	[SNAPSHOT_GENERATOR] = "generator",
	[SNAPSHOT_COROUTINE] = "coroutine",
	[SNAPSHOT_ASYNC_GENERATOR] = "async generator",
	[SNAPSHOT_GREENLET] = "greenlet",
};

double snapshot_overhead(uint64_t overhead_ns, uint64_t own_cpu_ns)
{
	return own_cpu_ns ? (double)overhead_ns / (double)own_cpu_ns : -1;
}

double snapshot_error(const struct snapshot_func *f, enum snapshot_figure figure)
{
	return f->variance[figure] < 0 ? -1 : sqrt(f->variance[figure]);
}

void snapshot_add_variance(struct snapshot_func *f, const double variance[SNAPSHOT_FIGURES])
{
	for (int i = 0; i < SNAPSHOT_FIGURES; i++)
		f->variance[i] =
			f->variance[i] < 0 || variance[i] < 0 ? -1 : f->variance[i] + variance[i];
}

/* A replaced histogram stays in the arena. */
int snapshot_add_durations(struct snapshot *s, struct snapshot_func *f, int clock,
			   const struct histogram_sum *more, uint64_t max)
{
	struct histogram_sum sum = *more;
	struct snapshot_durations *d;
	uint32_t first, len;
	uint64_t *n;

	if (!more->count)
		return 0;
	if (!f->durations)
		f->durations = snapshot_alloc(s, SNAPSHOT_CLOCKS, sizeof(*f->durations));
	if (!f->durations)
		return -ENOMEM;
	d = &f->durations[clock];
	histogram_add(&sum, &d->histogram);
	len = histogram_range(&sum, &first);
	n = snapshot_alloc(s, len, sizeof(*n));
	if (!n)
		return -ENOMEM;
	memcpy(n, sum.n + first, len * sizeof(*n));
	d->histogram = (struct histogram){n, (uint16_t)first, (uint16_t)len};
	d->max = max > d->max ? max : d->max;
	return 0;
}

int snapshot_merge_durations(struct snapshot *s, struct snapshot_func *f,
			     const struct snapshot_durations *more)
{
	int err = 0;

	for (int c = 0; c < SNAPSHOT_CLOCKS && more && !err; c++) {
		struct histogram_sum sum = {.count = 0};

		histogram_add(&sum, &more[c].histogram);
		err = snapshot_add_durations(s, f, c, &sum, more[c].max);
	}
	return err;
}

bool snapshot_has_durations(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (s->funcs[i].durations)
			return true;
	return false;
}

bool snapshot_exact(const struct snapshot *s)
{
	/* Losses that affect calls or contexts; the others affect only a name or a time. */
	static const enum pyp_loss lossy[] = {
		PYP_LOSS_lost_events,
		PYP_LOSS_fault_frame,
		PYP_LOSS_map_full,
		PYP_LOSS_unknown_site,
	};

	for (uint32_t i = 0; i < s->ntargets; i++) {
		const struct snapshot_target *t = &s->targets[i];

		if (t->decode_errors || t->truncated || t->misses_calls || t->mode == MODE_SAMPLE ||
		    t->windows.sampled)
			return false;
		for (size_t k = 0; k < sizeof(lossy) / sizeof(lossy[0]); k++)
			if (t->losses[lossy[k]])
				return false;
	}
	return true;
}

bool snapshot_estimated(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (s->targets[i].estimate.rate || s->targets[i].mode == MODE_SAMPLE ||
		    s->targets[i].windows.sampled)
			return true;
	return false;
}

bool snapshot_guesses_counts(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (s->targets[i].mode == MODE_SAMPLE || s->targets[i].windows.sampled)
			return true;
	return false;
}

bool snapshot_has_errors(const struct snapshot *s)
{
	return snapshot_estimated(s) && !s->folded && !s->stripped && !s->builtins_of;
}

bool snapshot_func_is_gc(const struct snapshot_func *f)
{
	return f->pseudo && f->name &&
	       strncmp(f->name, SNAPSHOT_GC_PREFIX, strlen(SNAPSHOT_GC_PREFIX)) == 0;
}

bool snapshot_func_is_native(const struct snapshot_func *f)
{
	return !f->pseudo && !f->firstlineno && f->filename &&
	       strcmp(f->filename, SNAPSHOT_NATIVE_FILE) == 0;
}

enum snapshot_builtins snapshot_builtins(const struct snapshot *s)
{
	uint32_t n = 0, of = 0;

	/* Samples do not identify C functions. */
	for (uint32_t i = 0; i < s->ntargets; i++) {
		of += s->targets[i].mode != MODE_SAMPLE;
		n += s->targets[i].builtins;
	}
	return n == 0	 ? SNAPSHOT_BUILTINS_NONE
	       : n == of ? SNAPSHOT_BUILTINS_ALL
			 : SNAPSHOT_BUILTINS_SOME;
}

unsigned int snapshot_target_modes(const struct snapshot_target *t)
{
	bool counted = t->mode == MODE_COUNT && t->estimate.rate;

	return 1u << t->mode | (counted ? 1u << MODE_SAMPLE : 0);
}

unsigned int snapshot_modes(const struct snapshot *s)
{
	unsigned int modes = 0;

	for (uint32_t i = 0; i < s->ntargets; i++)
		modes |= snapshot_target_modes(&s->targets[i]);
	return modes;
}

enum mode snapshot_thread_mode(const struct snapshot *s, uint32_t thread)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (s->targets[i].pid == s->threads[thread].pid)
			return s->targets[i].mode;
	return MODE_TRACE;
}

static bool node_valid(const struct snapshot *s, uint32_t i)
{
	const struct snapshot_node *n = &s->nodes[i];

	if (n->thread >= s->nthreads)
		return false;
	if (n->parent == SNAPSHOT_NONE)
		return n->func == SNAPSHOT_NONE && s->threads[n->thread].root == i;
	if (n->parent >= i || n->func >= s->nfuncs)
		return false;
	return s->nodes[n->parent].thread == n->thread;
}

static bool thread_valid(const struct snapshot *s, uint32_t i)
{
	uint32_t root = s->threads[i].root;

	return root < s->nnodes && s->nodes[root].parent == SNAPSHOT_NONE &&
	       s->nodes[root].thread == i;
}

/* A function of the snapshot, or none. */
static bool is_func(const struct snapshot *s, uint32_t func)
{
	return func == SNAPSHOT_NONE || func < s->nfuncs;
}

static bool lines_valid(const struct snapshot_func *f)
{
	for (uint32_t i = 0; i < f->nlines; i++)
		if (f->lines[i].line < 0 || (i && f->lines[i].line <= f->lines[i - 1].line))
			return false;
	return true;
}

bool snapshot_valid(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nthreads; i++)
		if (!thread_valid(s, i))
			return false;
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (!s->funcs[i].filename || !s->funcs[i].name || !lines_valid(&s->funcs[i]))
			return false;
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (!node_valid(s, i))
			return false;
	for (uint32_t i = 0; i < s->ngil_pairs; i++)
		if (!is_func(s, s->gil_pairs[i].holder) || !is_func(s, s->gil_pairs[i].waiter))
			return false;
	for (uint32_t i = 0; i < s->nwaits; i++)
		if (!is_func(s, s->waits[i].func) || s->waits[i].why >= WAITS)
			return false;
	for (uint32_t i = 0; i < s->ncoros; i++)
		if (s->coros[i].func >= s->nfuncs ||
		    (unsigned int)s->coros[i].kind >= SNAPSHOT_CORO_KINDS)
			return false;
	return true;
}

/* 1234567 → "1,234,567"; text has room for any number. */
static void with_commas(uint64_t n, char text[32])
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = digits[i];
	}
	text[at] = '\0';
}

const char *snapshot_folded_name(struct snapshot *s, uint64_t n, const char *entry)
{
	_cleanup_free_ char *name = NULL;
	char number[32];

	with_commas(n, number);
	if (asprintf(&name, "ended threads (%s)%s%s", number, entry ? " of " : "",
		     entry ? entry : "") < 0) {
		name = NULL;
		return NULL;
	}
	return snapshot_str(s, name);
}
