// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks the lists of the garbage collector: see census.h.
 *
 * A list is circular and doubly linked through the headers in front of the objects (PyGC_Head:
 * next, prev; Include/internal/pycore_gc.h, objimpl.h before 3.8). Its head is in the collector's
 * state. The layout of that state differs between builds of one version (Debian's 3.13 packs it to
 * 4 bytes), so heads are recognized by their contents: a pair of links whose neighbours link back.
 */
#include "python/census.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "python/census_priv.h"
#include "python/pages.h"

#define MAX_INTERPRETERS 1024u
#define MAX_LISTS	 8u /* per interpreter; there are 3 or 4 */
#define MAX_STATE	 512u
#define MAX_OBJECTS	 (UINT64_C(1) << 25)
#define MAX_READS	 (UINT64_C(1) << 24)
#define MAX_PASSES	 3u
#define FIND_TRIES	 64u
#define PAUSE_NS	 2000000
#define TRAIL		 64u /* number of recent nodes to which the walk can return */
#define LINK_FLAGS	 3u  /* in the lowest bits of links, since 3.8 */
#define PREV		 8u

/* The addresses of visited list nodes, in a hash table with open addressing. */
struct seen {
	uint64_t *slots;
	uint64_t mask, n;
};

struct walk {
	const struct python *py;
	const struct layout *l;
	struct pages *pages;
	struct census_types types;
	struct census *c;
	struct seen seen;
	uint64_t heads[MAX_LISTS];
	uint32_t nheads;
	uint64_t trail[TRAIL];
	uint64_t steps, until_ns;
	int err;      /* -ENOMEM; ends the walk */
	census_fn fn; /* see python_census_each; may be NULL */
	void *ctx;
};

void census_deinit(struct census *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		free(c->types[i].name);
	free(c->types);
	*c = (struct census){0};
}

/* ---- visited nodes ---------------------------------------------------------------------- */

static uint64_t *seen_slot(const struct seen *s, uint64_t addr)
{
	uint64_t i = (addr >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20;

	while (s->slots[i & s->mask] && s->slots[i & s->mask] != addr)
		i++;
	return &s->slots[i & s->mask];
}

static int seen_grow(struct seen *s)
{
	struct seen more = {.mask = s->slots ? 2 * s->mask + 1 : 65535, .n = s->n};

	more.slots = calloc(more.mask + 1, sizeof(*more.slots));
	if (!more.slots)
		return -ENOMEM;
	for (uint64_t i = 0; s->slots && i <= s->mask; i++)
		if (s->slots[i])
			*seen_slot(&more, s->slots[i]) = s->slots[i];
	free(s->slots);
	*s = more;
	return 0;
}

/* Returns 1 if addr is new, 0 if it was visited before, -ENOMEM. */
static int seen_add(struct seen *s, uint64_t addr)
{
	uint64_t *slot;

	if ((!s->slots || 2 * s->n > s->mask) && seen_grow(s) < 0)
		return -ENOMEM;
	slot = seen_slot(s, addr);
	if (*slot)
		return 0;
	*slot = addr;
	s->n++;
	return 1;
}

/* ---- nodes ------------------------------------------------------------------------------- */

static int read_link(struct walk *w, uint64_t at, bool fresh, uint64_t *ret)
{
	uint64_t v;
	int r = (fresh ? pages_read_fresh : pages_read)(w->pages, at, &v, sizeof(v));

	if (r == 0)
		*ret = v & ~(uint64_t)LINK_FLAGS;
	return r;
}

static bool links_to(struct walk *w, uint64_t at, bool fresh, uint64_t to)
{
	uint64_t v;

	return read_link(w, at, fresh, &v) == 0 && v == to;
}

static bool is_head(const struct walk *w, uint64_t addr)
{
	for (uint32_t i = 0; i < w->nheads; i++)
		if (w->heads[i] == addr)
			return true;
	return false;
}

/*
 * Returns whether node is an object. A freed object has no references; if its memory was reused,
 * its type pointer is no longer valid.
 */
static bool is_object(struct walk *w, uint64_t node, bool fresh,
		      uint8_t object[CENSUS_OBJECT_BYTES], uint32_t *ret_type)
{
	uint64_t addr = node + w->l->gc_head, type;
	uint32_t refs;
	int r;

	if (!node || node % 8 ||
	    (fresh ? pages_read_fresh : pages_read)(w->pages, addr, object, CENSUS_OBJECT_BYTES))
		return false;
	memcpy(&refs, object, sizeof(refs)); /* since 3.14 the upper half holds flags */
	memcpy(&type, object + w->l->bpf.object_type, sizeof(type));
	if (!refs)
		return false;
	r = census_types_find(&w->types, type, ret_type);
	if (r == -ENOMEM)
		w->err = r;
	if (r == -E2BIG)
		*ret_type = UINT32_MAX;
	return r == 0 || r == -E2BIG;
}

static void count(struct walk *w, uint64_t node, const uint8_t object[CENSUS_OBJECT_BYTES],
		  uint32_t type, bool confirmed)
{
	int r = seen_add(&w->seen, node);
	struct census_class *t;

	if (r <= 0) {
		w->err = r < 0 ? r : w->err;
		return;
	}
	w->c->objects++;
	w->c->unconfirmed += !confirmed;
	if (type == UINT32_MAX) {
		w->c->other++;
		return;
	}
	t = &w->types.v[type];
	t->count++;
	if (w->fn) {
		w->fn(w->ctx, node + w->l->gc_head, t->addr);
		return;
	}
	t->bytes += census_types_size(&w->types, t, node + w->l->gc_head, object);
}

/*
 * Counts the node `at`, to which `from` links by its link at offset `way`. Returns false if it is
 * not an object of the list.
 */
static bool take(struct walk *w, uint64_t from, uint64_t at, uint64_t way)
{
	uint8_t object[CENSUS_OBJECT_BYTES];
	bool confirmed = links_to(w, at + (PREV - way), false, from);
	uint32_t type;

	/* One of the cached pages may be older than the other: read both links again. */
	if (!confirmed && links_to(w, from + way, true, at))
		confirmed = links_to(w, at + (PREV - way), true, from);
	if (!is_object(w, at, !confirmed, object, &type))
		return false;
	count(w, at, object, type, confirmed);
	return !w->err;
}

/* ---- lists ------------------------------------------------------------------------------- */

/* A step reads up to 3 * TRAIL times if the walk loses the list. */
#define CLOCK_STEPS 64u

static bool may_go_on(struct walk *w)
{
	if (w->err)
		return false;
	w->c->limited |= w->seen.n >= MAX_OBJECTS ||
			 (w->steps % CLOCK_STEPS == 0 && clock_monotonic_ns() >= w->until_ns);
	/* Nodes visited before are skipped, but the number of steps is limited. */
	return !w->c->limited && w->steps++ < 4 * w->seen.n + 100000;
}

/* Searches the last TRAIL nodes for one that is still in a list. Returns its successor; 0: none. */
static uint64_t step_back(struct walk *w, uint64_t passed, uint64_t way, uint64_t *ret_from)
{
	uint8_t object[CENSUS_OBJECT_BYTES];
	uint32_t type;

	for (uint64_t i = 0; i < TRAIL && i < passed; i++) {
		uint64_t from = w->trail[(passed - 1 - i) % TRAIL], at;

		if ((!is_head(w, from) && !is_object(w, from, true, object, &type)) ||
		    read_link(w, from + way, true, &at) ||
		    !links_to(w, at + (PREV - way), true, from))
			continue;
		if (!is_head(w, at) && !is_object(w, at, true, object, &type))
			continue;
		*ret_from = from;
		return at;
	}
	return 0;
}

/*
 * Walks from a list's head along the links at offset `way` to a head. Returns false if the walk
 * lost the list.
 */
static bool walk_way(struct walk *w, uint64_t head, uint64_t way)
{
	uint64_t from = head, at, passed = 0;

	w->trail[passed++ % TRAIL] = head;
	if (read_link(w, head + way, true, &at))
		return false;
	while (!is_head(w, at)) {
		if (!may_go_on(w))
			return false;
		if (!take(w, from, at, way)) {
			at = w->err ? 0 : step_back(w, passed, way, &from);
			if (!at)
				return false;
			continue;
		}
		w->trail[passed++ % TRAIL] = at;
		from = at;
		if (read_link(w, at + way, false, &at))
			at = 0;
	}
	return true;
}

static void walk_lists(struct walk *w)
{
	for (uint32_t i = 0; i < w->nheads && !w->err; i++) {
		w->c->lists++;
		w->steps = 0;
		if (walk_way(w, w->heads[i], 0))
			continue;
		w->steps = 0;
		if (!w->err && !walk_way(w, w->heads[i], PREV))
			w->c->torn++;
	}
}

/* ---- heads ------------------------------------------------------------------------------- */

static void add_head(struct walk *w, uint64_t addr)
{
	uint32_t i = w->nheads;

	if (i == MAX_LISTS || is_head(w, addr))
		return;
	/*
	 * Youngest generation first. Objects move to older lists, so the walk reaches them there.
	 */
	for (; i && w->heads[i - 1] > addr; i--)
		w->heads[i] = w->heads[i - 1];
	w->heads[i] = addr;
	w->nheads++;
}

static int look_for_heads(struct walk *w, uint64_t state)
{
	uint8_t block[MAX_STATE];
	uint32_t size = w->l->gc_size;
	int r = size > sizeof(block) ? -EINVAL : pages_read_fresh(w->pages, state, block, size);

	for (uint32_t at = 0; r == 0 && at + 16 <= size; at += 4) {
		uint64_t next, prev;

		memcpy(&next, block + at, sizeof(next));
		memcpy(&prev, block + at + PREV, sizeof(prev));
		if (next && prev && next % 4 == 0 && prev % 4 == 0 &&
		    (links_to(w, next + PREV, true, state + at) ||
		     links_to(w, prev, true, state + at)))
			add_head(w, state + at);
	}
	return r;
}

static void pause_a_moment(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/*
 * Finds all heads. Retries, because one may not be recognizable while the collector rearranges its
 * lists.
 */
static int find_heads(struct walk *w, uint64_t state)
{
	const uint32_t want = w->l->minor == 6 ? 3 : 4; /* 3.7+: there is a permanent generation */

	w->nheads = 0;
	for (unsigned int i = 0; i < FIND_TRIES && w->nheads < want; i++) {
		int r = look_for_heads(w, state);

		if (r < 0)
			return r;
		if (w->nheads < want)
			pause_a_moment();
	}
	return w->nheads < want ? -ENOENT : 0;
}

static int walk_state(struct walk *w, uint64_t state)
{
	int r = find_heads(w, state);

	if (r == 0)
		walk_lists(w);
	return r < 0 ? r : w->err;
}

static int walk_interpreters(struct walk *w)
{
	uint64_t interp;
	int r = pages_read_fresh(w->pages, python_interp_head(w->py), &interp, sizeof(interp));

	for (; r == 0 && interp && w->c->interpreters < MAX_INTERPRETERS; w->c->interpreters++) {
		if (w->l->gc_place == LAYOUT_GC_INTERPRETER)
			r = walk_state(w, interp + w->l->gc_state);
		if (r == 0)
			r = pages_read_fresh(w->pages, interp + w->l->interp_next, &interp,
					     sizeof(interp));
	}
	return r;
}

static int walk_all(struct walk *w)
{
	uint64_t state = w->py->runtime + w->l->gc_state;
	int r = walk_interpreters(w);

	if (r < 0 || w->l->gc_place == LAYOUT_GC_INTERPRETER)
		return r;
	if (w->l->gc_place == LAYOUT_GC_POINTER)
		r = pages_read_fresh(w->pages, w->py->gc_generation0 + w->py->bias, &state,
				     sizeof(state));
	return r < 0 ? r : walk_state(w, state);
}

/* ---- passes ------------------------------------------------------------------------------ */

static void start_pass(struct walk *w)
{
	const uint32_t passes = w->c->passes + 1;

	*w->c = (struct census){.passes = passes};
	for (uint32_t i = 0; i < w->types.n; i++)
		w->types.v[i].count = w->types.v[i].bytes = 0;
	if (w->seen.slots)
		memset(w->seen.slots, 0, (w->seen.mask + 1) * sizeof(*w->seen.slots));
	w->seen.n = 0;
	pages_clear(w->pages);
}

/* Returns whether another pass like the one begun then would end in time. */
static bool has_time(const struct walk *w, uint64_t begun_ns)
{
	const uint64_t now = clock_monotonic_ns();

	return now < w->until_ns && now - begun_ns < w->until_ns - now;
}

static int make_passes(struct walk *w)
{
	uint64_t begun;
	int r;

	do {
		begun = clock_monotonic_ns();
		start_pass(w);
		r = walk_all(w);
		if (r == -E2BIG)
			w->c->limited = true;
		/* A collection may have been running. */
		if (w->c->torn && !w->c->limited)
			pause_a_moment();
	} while ((r == 0 || r == -EFAULT) && (r < 0 || w->c->torn) && !w->c->limited &&
		 w->c->passes < MAX_PASSES && has_time(w, begun));
	return r == -E2BIG ? 0 : r;
}

static int by_count(const void *a, const void *b)
{
	const struct census_type *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct census_type *)a)->name, ((const struct census_type *)b)->name);
}

/* Merges types with the same name into one row. */
static void unite(struct census *c)
{
	uint32_t n = 0;

	qsort(c->types, c->n, sizeof(*c->types), by_name);
	for (uint32_t i = 0; i < c->n; i++) {
		struct census_type *to = n ? &c->types[n - 1] : NULL;

		if (!to || strcmp(to->name, c->types[i].name) != 0) {
			c->types[n++] = c->types[i];
			continue;
		}
		to->count += c->types[i].count;
		to->bytes += c->types[i].bytes;
		free(c->types[i].name);
	}
	c->n = n;
	qsort(c->types, c->n, sizeof(*c->types), by_count);
}

static int give_rows(struct walk *w)
{
	struct census *c = w->c;

	c->types = calloc(w->types.n + 1, sizeof(*c->types));
	if (!c->types)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->types.n; i++) {
		const struct census_class *t = &w->types.v[i];

		if (!t->count)
			continue;
		c->types[c->n] = (struct census_type){
			.name = census_types_name(&w->types, t),
			.count = t->count,
			.bytes = t->bytes,
		};
		c->bytes += t->bytes;
		if (!c->types[c->n++].name)
			return -ENOMEM;
	}
	unite(c);
	return 0;
}

static int can_walk(const struct python *py, const struct memory *mem, uint64_t *ret_type)
{
	const struct layout *l = &py->layout;

	if (python_free_threaded(py) || !l->gc_size || !py->runtime || !py->code_type ||
	    (l->gc_place == LAYOUT_GC_POINTER && !py->gc_generation0))
		return -EOPNOTSUPP;
	/* The type of PyCode_Type is `type`. */
	return memory_read_u64(mem, python_code_type(py) + l->bpf.object_type, ret_type);
}

static int explain(const struct python *py, int r, struct diag *diag)
{
	if (r == -EOPNOTSUPP)
		return diag_set(diag, r, PYP_EXIT_UNTRACEABLE, "",
				"object lists of Python %s are not supported%s", py->version,
				python_free_threaded(py) ? ": free-threaded builds have none" : "");
	if (r == -ENOENT)
		return diag_set(diag, r, PYP_EXIT_UNTRACEABLE,
				"try again: a collection may have been running",
				"the collector's lists were not found in Python %s", py->version);
	return r < 0 ? diag_errno(diag, -r, "cannot read the collector's lists") : 0;
}

static int take_census(const struct python *py, const struct memory *mem, uint64_t limit_ns,
		       census_fn fn, void *ctx, struct census *ret, struct diag *diag)
{
	_cleanup_(pages_freep) struct pages *pages = pages_new(mem, MAX_READS);
	struct census c = {0};
	struct walk w = {.py = py,
			 .l = &py->layout,
			 .pages = pages,
			 .c = &c,
			 .until_ns = clock_monotonic_ns() + limit_ns,
			 .fn = fn,
			 .ctx = ctx};
	int r = pages ? can_walk(py, mem, &w.types.type_type) : -ENOMEM;

	w.types.layout = w.l;
	w.types.pages = pages;
	if (r == 0)
		r = make_passes(&w);
	if (r == 0)
		r = give_rows(&w);
	free(w.seen.slots);
	census_types_deinit(&w.types);
	if (r < 0) {
		census_deinit(&c);
		return explain(py, r, diag);
	}
	*ret = c;
	return 0;
}

int python_census(const struct python *py, const struct memory *mem, uint64_t limit_ns,
		  struct census *ret, struct diag *diag)
{
	return take_census(py, mem, limit_ns, NULL, NULL, ret, diag);
}

int python_census_each(const struct python *py, const struct memory *mem, uint64_t limit_ns,
		       census_fn fn, void *ctx)
{
	struct census c = {0};
	int r = take_census(py, mem, limit_ns, fn, ctx, &c, NULL);

	if (r == 0)
		census_deinit(&c);
	return r;
}
