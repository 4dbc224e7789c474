// SPDX-License-Identifier: BSD-2-Clause
/* Functions and code objects: see func.h. */
#include "stats/func.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/snapshot.h"

#define FUNC_NONE      UINT32_MAX
#define CODES_PER_FUNC 4

static uint64_t hash_str(uint64_t seed, const char *str)
{
	/*
	 * Hashes the terminator too, so that "ab"+"c" differs from "a"+"bc"; NULL differs from "".
	 */
	return str ? strtab_hash(seed, str, strlen(str) + 1) : strtab_hash(seed, "\1", 1);
}

uint64_t func_identity_hash(const struct func_identity *id)
{
	uint64_t h = strtab_hash(0, &id->firstlineno, sizeof(id->firstlineno));

	return hash_str(hash_str(hash_str(h, id->filename), id->name), id->qualname);
}

static bool str_equal(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool func_identity_equal(const struct func_identity *a, const struct func_identity *b)
{
	return a->firstlineno == b->firstlineno && str_equal(a->name, b->name) &&
	       str_equal(a->filename, b->filename) && str_equal(a->qualname, b->qualname);
}

int funcs_init(struct funcs *f, uint32_t limit, uint64_t string_bytes)
{
	static const struct func_identity pseudo[FUNC_PSEUDO_MAX] = {
		[FUNC_TRUNCATED] = {.filename = "~", .name = "(truncated)"},
		[FUNC_LOST] = {.filename = "~", .name = "(lost)"},
		[FUNC_UNSEEN] = {.filename = "~", .name = "(unseen)"},
		[FUNC_UNREPORTED] = {.filename = "~", .name = "(switch not reported)"},
		[FUNC_UNWALKED] = {.filename = "~", .name = "(waits not sampled)"},
		[FUNC_GC] = {.filename = "~", .name = SNAPSHOT_GC_PREFIX " generation 0>"},
		[FUNC_GC + 1] = {.filename = "~", .name = SNAPSHOT_GC_PREFIX " generation 1>"},
		[FUNC_GC + 2] = {.filename = "~", .name = SNAPSHOT_GC_PREFIX " generation 2>"},
		[FUNC_GC + PYP_GC_UNKNOWN] = {.filename = "~", .name = SNAPSHOT_GC_PREFIX ">"},
	};

	/* The pseudo functions are not counted in the limits. */
	*f = (struct funcs){.limit = limit + FUNC_PSEUDO_MAX, .strings.limit = UINT64_MAX};
	for (uint32_t i = 0; i < FUNC_PSEUDO_MAX; i++) {
		funcs_intern(f, &pseudo[i]);
		if (f->n != i + 1) {
			funcs_deinit(f);
			return -ENOMEM;
		}
	}
	f->strings.limit = f->strings.size + string_bytes;
	/* A target's function with the name of a pseudo function must not be mapped to it. */
	map_clear(&f->by_identity);
	return 0;
}

void funcs_deinit(struct funcs *f)
{
	free(f->list);
	strtab_deinit(&f->strings);
	map_deinit(&f->by_identity);
	map_deinit(&f->by_code);
	*f = (struct funcs){0};
}

struct func_identity funcs_identity(const struct funcs *f, uint32_t func)
{
	const struct func *fn = &f->list[func];

	return (struct func_identity){
		.filename = strtab_get(&f->strings, fn->filename),
		.name = strtab_get(&f->strings, fn->name),
		.qualname = strtab_get(&f->strings, fn->qualname),
		.firstlineno = fn->firstlineno,
	};
}

bool funcs_is_native(const struct funcs *f, uint32_t func)
{
	const struct func_identity id = funcs_identity(f, func);

	return func >= FUNC_PSEUDO_MAX && !id.firstlineno && id.filename &&
	       strcmp(id.filename, SNAPSHOT_NATIVE_FILE) == 0;
}

static int reserve(struct funcs *f)
{
	uint32_t cap = f->cap ? f->cap * 2 : 64;
	struct func *list;

	if (f->n >= f->limit)
		return -ENOSPC;
	if (f->n < f->cap)
		return 0;
	list = reallocarray(f->list, cap, sizeof(*list));
	if (!list)
		return -ENOMEM;
	f->list = list;
	f->cap = cap;
	return 0;
}

static int intern_strings(struct funcs *f, const struct func_identity *id, struct func *ret)
{
	int err = strtab_add(&f->strings, id->filename, &ret->filename);

	if (!err)
		err = strtab_add(&f->strings, id->name, &ret->name);
	ret->qualname = STRTAB_NONE;
	if (!err && id->qualname)
		err = strtab_add(&f->strings, id->qualname, &ret->qualname);
	return err;
}

static uint32_t func_add(struct funcs *f, const struct func_identity *id, uint64_t hash,
			 uint32_t variant)
{
	struct func fn = {.firstlineno = id->firstlineno, .variant = variant, .next = FUNC_NONE};

	map_get(&f->by_identity, hash, &fn.next);
	if (reserve(f) || intern_strings(f, id, &fn) || map_put(&f->by_identity, hash, f->n))
		return FUNC_TRUNCATED;
	f->list[f->n] = fn;
	return f->n++;
}

uint32_t funcs_intern(struct funcs *f, const struct func_identity *id)
{
	uint64_t hash = func_identity_hash(id);
	uint32_t i = FUNC_NONE;

	map_get(&f->by_identity, hash, &i);
	for (; i != FUNC_NONE; i = f->list[i].next) {
		struct func_identity other = funcs_identity(f, i);

		if (f->list[i].variant == 0 && func_identity_equal(id, &other))
			return i;
	}
	return func_add(f, id, hash, 0);
}

/* The functions with one identity */
struct variants {
	uint32_t n;
	uint32_t next;	  /* number for a further one */
	uint32_t last;	  /* FUNC_NONE: there is none */
	uint32_t unbound; /* one without a living code object; FUNC_NONE: there is none */
};

static struct variants variants_find(const struct funcs *f, const struct func_identity *id,
				     uint64_t hash)
{
	struct variants v = {.last = FUNC_NONE, .unbound = FUNC_NONE};
	uint32_t i = FUNC_NONE;

	map_get(&f->by_identity, hash, &i);
	for (; i != FUNC_NONE; i = f->list[i].next) {
		struct func_identity other = funcs_identity(f, i);

		if (!func_identity_equal(id, &other))
			continue;
		if (!v.n++)
			v.last = i;
		if (v.unbound == FUNC_NONE && !f->list[i].bound)
			v.unbound = i;
		if (f->list[i].variant >= v.next)
			v.next = f->list[i].variant + 1;
	}
	return v;
}

/*
 * Returns the variant for one more code object: an unbound one, a new one, or the last one if the
 * maximum is reached.
 */
static uint32_t func_variant(struct funcs *f, const struct func_identity *id)
{
	uint64_t hash = func_identity_hash(id);
	struct variants v = variants_find(f, id, hash);

	if (v.unbound != FUNC_NONE)
		return v.unbound;
	return v.n < FUNC_VARIANTS_MAX ? func_add(f, id, hash, v.next) : v.last;
}

static void func_unlink(struct funcs *f, uint32_t func, uint64_t hash)
{
	uint32_t i = FUNC_NONE, next = f->list[func].next;

	map_get(&f->by_identity, hash, &i);
	if (i == func && next == FUNC_NONE) {
		map_del(&f->by_identity, hash);
		return;
	}
	if (i == func) {
		(void)map_put(&f->by_identity, hash, next); /* the key exists */
		return;
	}
	while (i != FUNC_NONE && f->list[i].next != func)
		i = f->list[i].next;
	if (i != FUNC_NONE)
		f->list[i].next = next;
}

int funcs_rename(struct funcs *f, uint64_t code, const struct func_identity *id)
{
	uint64_t hash = func_identity_hash(id), old_hash;
	struct func_identity old;
	struct variants v;
	struct func fn;
	uint32_t func;
	int err;

	if (!funcs_find(f, code, &func) || func_is_pseudo(func))
		return -ENOENT;
	old = funcs_identity(f, func);
	old_hash = func_identity_hash(&old);
	if (func_identity_equal(&old, id))
		return 0;
	if (f->list[func].codes != 1 || hash == old_hash)
		return -EBUSY;
	v = variants_find(f, id, hash);
	if (v.n >= FUNC_VARIANTS_MAX)
		return -ENOSPC;
	fn = f->list[func];
	fn.firstlineno = id->firstlineno;
	fn.variant = v.next;
	fn.next = FUNC_NONE;
	map_get(&f->by_identity, hash, &fn.next);
	err = intern_strings(f, id, &fn);
	if (err)
		return err;
	if (map_put(&f->by_identity, hash, func))
		return -ENOMEM;
	func_unlink(f, func, old_hash);
	f->list[func] = fn;
	return 0;
}

static void func_unbind(struct funcs *f, uint32_t func)
{
	if (!func_is_pseudo(func) && f->list[func].bound)
		f->list[func].bound--;
}

uint32_t funcs_bind(struct funcs *f, uint64_t code, const struct func_identity *id, bool *ret_bound)
{
	uint32_t func, old = FUNC_NONE;
	bool bound;

	if (funcs_find(f, code, &old)) {
		struct func_identity other = funcs_identity(f, old);

		if (!func_is_pseudo(old) && func_identity_equal(id, &other)) {
			f->list[old].codes++;
			if (ret_bound)
				*ret_bound = true;
			return old;
		}
		func_unbind(f, old);
	}
	func = func_variant(f, id);
	bound = (old != FUNC_NONE || f->by_code.n / CODES_PER_FUNC < f->limit) &&
		map_put(&f->by_code, code, func) == 0;
	if (bound && !func_is_pseudo(func))
		f->list[func].bound++;
	f->list[func].codes++;
	if (ret_bound)
		*ret_bound = bound;
	return func;
}

void funcs_forget(struct funcs *f, uint64_t code)
{
	uint32_t func;

	if (!funcs_find(f, code, &func))
		return;
	func_unbind(f, func);
	map_del(&f->by_code, code);
}

void funcs_forget_all(struct funcs *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		f->list[i].bound = 0;
	map_clear(&f->by_code);
}
