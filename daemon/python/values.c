// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads Python objects: see values.h. Offsets are those from the end of the object's header, which
 * apply from 3.6 to 3.15 unless their use depends on the version. Source: Include/cpython/object.h,
 * dictobject.h, setobject.h, longintrepr.h, Include/internal/pycore_dict.h and pycore_object.h.
 */
#include "python/values.h"

#include <errno.h>
#include <string.h>

#include "base/utf8_clean.h"
#include "python/dict_keys.h"

/* of a type, from the end of the header of 16 bytes */
#define TYPE_BYTES	296u
#define TYPE_NAME	24u
#define TYPE_BASICSIZE	32u
#define TYPE_FLAGS	168u
#define TYPE_BASE	256u
#define TYPE_DICTOFFSET 288u

#define FLAG_INLINE_VALUES (1u << 2) /* 3.13+ */
#define FLAG_MANAGED_DICT  (1u << 4) /* 3.11+ */

#define METATYPES	 8u
#define BASES		 64u
#define ITEMS_MAX	 (1u << 20)
#define BASE_MAX	 (1u << 24)
#define KEY_MAX		 64u
#define MODULES_SEARCH	 16384u /* bytes of an interpreter */
#define THREADS_MAX	 TARGET_MAX_THREADS
#define INTERPRETERS_MAX 1024u

/* The memory is the first member of struct values, which is not constant. */
static int read_cached(const struct memory *mem, uint64_t addr, void *out, size_t n)
{
	return values_read((struct values *)(uintptr_t)mem, addr, out, n);
}

struct values *values_new(const struct python *py, const struct memory *mem, uint64_t max_reads)
{
	struct values *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->mem.read = read_cached;
	v->py = py;
	v->l = &py->layout;
	v->head = v->l->bpf.object_type + 8;
	v->pages = pages_new(mem, max_reads);
	if (!v->pages) {
		free(v);
		return NULL;
	}
	return v;
}

void values_free(struct values *v)
{
	if (v)
		pages_free(v->pages);
	free(v);
}

void values_refresh(struct values *v)
{
	pages_clear(v->pages);
	v->modules = 0;
}

int values_read(struct values *v, uint64_t addr, void *out, size_t n)
{
	if (++v->steps > VALUES_STEPS_MAX)
		return -E2BIG;
	return pages_read(v->pages, addr, out, n);
}

uint64_t values_word(struct values *v, uint64_t addr)
{
	uint64_t word;

	return addr && values_read(v, addr, &word, sizeof(word)) == 0 ? word : 0;
}

/* ---- types ------------------------------------------------------------------------------- */

static uint64_t u64_at(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static void read_name(struct values *v, uint64_t addr, char out[VALUE_CLASS_MAX])
{
	char text[VALUE_CLASS_MAX];
	size_t n = 0;

	while (n < sizeof(text) - 1 && values_read(v, addr + n, text + n, 1) == 0 && text[n])
		n++;
	text[n] = '\0';
	utf8_clean(text, out, VALUE_CLASS_MAX);
	for (char *p = out; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

/* Returns whether an object's type is `type`, whose type is itself, or a subclass of it. */
static bool is_metatype(struct values *v, uint64_t type)
{
	for (unsigned int i = 0; i < METATYPES; i++) {
		uint64_t of = values_word(v, type + v->l->bpf.object_type);

		if (!of || of % 8 ||
		    !(values_word(v, type + v->head - 16u + TYPE_FLAGS) & VALUE_TYPE))
			return false;
		if (of == type)
			return true;
		type = of;
	}
	return false;
}

static bool read_class(struct values *v, uint64_t type, struct value_class *ret)
{
	uint8_t block[TYPE_BYTES];
	uint64_t of = values_word(v, type + v->l->bpf.object_type);

	if (!of || type % 8 || values_read(v, type + v->head - 16u, block, sizeof(block)) ||
	    !is_metatype(v, of))
		return false;
	*ret = (struct value_class){
		.addr = type,
		.flags = u64_at(block, TYPE_FLAGS),
		.basicsize = u64_at(block, TYPE_BASICSIZE),
		.base = u64_at(block, TYPE_BASE),
		.dictoffset = (int64_t)u64_at(block, TYPE_DICTOFFSET),
	};
	read_name(v, u64_at(block, TYPE_NAME), ret->name);
	return ret->name[0] && ret->basicsize < BASE_MAX;
}

bool values_class(struct values *v, uint64_t object, struct value_class *ret)
{
	uint64_t type = object && object % 8 == 0 ? values_word(v, object + v->l->bpf.object_type)
						  : 0;

	return type && read_class(v, type, ret);
}

bool values_base(struct values *v, const struct value_class *c, const char *name,
		 struct value_class *ret)
{
	struct value_class up = *c;

	for (unsigned int i = 0; i < BASES; i++) {
		if (strcmp(up.name, name) == 0) {
			*ret = up;
			return true;
		}
		if (!up.base || !read_class(v, up.base, &up))
			return false;
	}
	return false;
}

bool values_is_a(struct values *v, const struct value_class *c, const char *name)
{
	struct value_class base;

	return values_base(v, c, name, &base);
}

/* ---- containers -------------------------------------------------------------------------- */

/* The values of a split dict, or of an instance, in the order of their keys. */
static uint64_t first_value(const struct values *v, uint64_t array)
{
	return v->l->minor >= 13 ? array + 8 : array;
}

static bool each_key(struct values *v, uint64_t keys, uint64_t array, values_fn fn, void *ctx)
{
	struct dict_keys k;

	if (!dict_keys_read(v->pages, v->l, keys, &k))
		return false;
	for (uint64_t i = 0; i < k.used && i < k.usable && i < ITEMS_MAX; i++) {
		uint64_t pair[2];

		if (values_read(v, k.entries + i * k.entry + k.key, pair, sizeof(pair)))
			return false;
		if (array)
			pair[1] = values_word(v, first_value(v, array) + 8 * i);
		if (pair[0] && pair[1] && !fn(ctx, pair[0], pair[1]))
			break;
	}
	return true;
}

static bool each_entry(struct values *v, uint64_t dict, values_fn fn, void *ctx)
{
	return each_key(v, values_word(v, dict + v->head + 16), values_word(v, dict + v->head + 24),
			fn, ctx);
}

bool values_each_item(struct values *v, uint64_t dict, values_fn fn, void *ctx)
{
	struct value_class c;

	return values_class(v, dict, &c) && c.flags & VALUE_DICT && each_entry(v, dict, fn, ctx);
}

static bool each_element(struct values *v, uint64_t set, values_fn fn, void *ctx)
{
	uint64_t mask = values_word(v, set + v->head + 16);
	uint64_t table = values_word(v, set + v->head + 24);

	if (!table || mask >= ITEMS_MAX)
		return false;
	for (uint64_t i = 0; i <= mask; i++) {
		uint64_t entry[2]; /* key, hash; the key of a deleted entry is an object of its own */

		if (values_read(v, table + 16 * i, entry, sizeof(entry)))
			return false;
		if (entry[0] && entry[1] != UINT64_MAX && !fn(ctx, 0, entry[0]))
			break;
	}
	return true;
}

static bool each_index(struct values *v, uint64_t items, uint64_t n, values_fn fn, void *ctx)
{
	for (uint64_t i = 0; i < n && i < ITEMS_MAX; i++) {
		uint64_t item = values_word(v, items + 8 * i);

		if (!item)
			return false;
		if (!fn(ctx, 0, item))
			break;
	}
	return true;
}

bool values_each(struct values *v, uint64_t container, values_fn fn, void *ctx)
{
	struct value_class c;
	uint64_t n;

	if (!values_class(v, container, &c))
		return false;
	if (values_is_a(v, &c, "set") || values_is_a(v, &c, "frozenset"))
		return each_element(v, container, fn, ctx);
	n = values_word(v, container + v->head);
	if (c.flags & VALUE_LIST)
		return each_index(v, values_word(v, container + v->head + 8), n, fn, ctx);
	/* 3.14+: a tuple's hash precedes its items. */
	return c.flags & VALUE_TUPLE &&
	       each_index(v, container + v->head + (v->l->minor >= 14 ? 16 : 8), n, fn, ctx);
}

bool values_equal(struct values *v, uint64_t str, const char *text)
{
	_cleanup_free_ char *have = NULL;
	uint64_t length;

	return python_str_start(v->l, &v->mem, str, KEY_MAX, &have, &length) == 0 &&
	       strcmp(have, text) == 0;
}

struct wanted {
	struct values *v;
	const char *key;
	uint64_t value;
};

static bool is_wanted(void *ctx, uint64_t key, uint64_t value)
{
	struct wanted *w = ctx;

	if (!values_equal(w->v, key, w->key))
		return true;
	w->value = value;
	return false;
}

uint64_t values_get(struct values *v, uint64_t dict, const char *key)
{
	struct wanted w = {v, key, 0};

	(void)values_each_item(v, dict, is_wanted, &w);
	return w.value;
}

/* ---- attributes -------------------------------------------------------------------------- */

static uint64_t in_values(struct values *v, const struct value_class *c, uint64_t array,
			  const char *name)
{
	struct wanted w = {v, name, 0};

	(void)each_key(v, values_word(v, c->addr + v->l->type_cached_keys), array, is_wanted, &w);
	return w.value;
}

/* 3.11: two words before the object point to its values and to its dict. */
static uint64_t managed_3_11(struct values *v, const struct value_class *c, uint64_t object,
			     const char *name)
{
	uint64_t array = values_word(v, object - 32);

	return array ? in_values(v, c, array, name)
		     : values_get(v, values_word(v, object - 24), name);
}

/* 3.12: one word, which points to the dict, or in front of the values and is odd. */
static uint64_t managed_3_12(struct values *v, const struct value_class *c, uint64_t object,
			     const char *name)
{
	uint64_t word = values_word(v, object - 24);

	return word & 1 ? in_values(v, c, word + 1, name) : values_get(v, word, name);
}

/* 3.13+: the dict before the object; without it, values behind the object (byte 3: they are valid). */
static uint64_t managed_3_13(struct values *v, const struct value_class *c, uint64_t object,
			     const char *name)
{
	bool free_threaded = python_free_threaded(v->py);
	uint64_t dict = values_word(v, object - (free_threaded ? 8 : 24));
	uint64_t array = object + c->basicsize;

	if (dict)
		return values_get(v, dict, name);
	if (!(c->flags & FLAG_INLINE_VALUES) || !(values_word(v, array) >> 24 & 0xff))
		return 0;
	return in_values(v, c, array, name);
}

uint64_t values_attribute(struct values *v, uint64_t object, const char *name)
{
	struct value_class c;

	if (!values_class(v, object, &c))
		return 0;
	if (v->l->minor >= 11 && c.flags & FLAG_MANAGED_DICT)
		return (v->l->minor >= 13   ? managed_3_13
			: v->l->minor == 12 ? managed_3_12
					    : managed_3_11)(v, &c, object, name);
	if (c.dictoffset <= 0 || c.dictoffset > (int64_t)BASE_MAX)
		return 0;
	return values_get(v, values_word(v, object + (uint64_t)c.dictoffset), name);
}

static bool is_module(struct values *v, uint64_t object)
{
	struct value_class c;

	return object && values_class(v, object, &c) && values_is_a(v, &c, "module");
}

/* The offset of sys.modules may differ between micro releases, so its contents are checked. */
uint64_t values_modules(struct values *v, uint64_t interp)
{
	if (v->interp == interp && v->modules)
		return v->modules;
	v->interp = interp;
	v->modules = values_word(v, interp + v->l->interp_modules);
	for (unsigned int at = 0; at < MODULES_SEARCH; at += 8) {
		if (is_module(v, values_get(v, v->modules, "sys")))
			return v->modules;
		v->modules = values_word(v, interp + at);
	}
	v->modules = 0;
	return 0;
}

uint64_t values_global(struct values *v, uint64_t interp, const char *module, const char *name)
{
	uint64_t found = values_get(v, values_modules(v, interp), module);

	if (!is_module(v, found))
		return 0;
	return values_get(v, values_word(v, found + v->head), name); /* md_dict */
}

/* ---- simple values ----------------------------------------------------------------------- */

int values_wide_int(struct values *v, uint64_t object, struct wide_int *ret)
{
	uint64_t word = values_word(v, object + v->head), n = word;
	uint32_t digits[4]; /* 30 bits each */

	*ret = (struct wide_int){.negative = (int64_t)word < 0};
	if (v->l->minor >= 12) { /* lv_tag: number of digits, 1 bit, sign (2 bits) */
		ret->negative = (word & 3) == 2;
		n = (word & 3) == 1 ? 0 : word >> 3;
	} else if (ret->negative) {
		n = 0 - word;
	}
	ret->bits = 30 * n;
	if (n > 4)
		return -E2BIG;
	if (n && values_read(v, object + v->head + 8u, digits, n * sizeof(*digits)))
		return -EFAULT;
	for (uint64_t i = n; i-- > 0;)
		ret->magnitude = ret->magnitude << 30 | (digits[i] & 0x3fffffff);
	return 0;
}

bool values_int(struct values *v, uint64_t object, uint64_t *ret)
{
	struct value_class c;
	struct wide_int w;

	if (!values_class(v, object, &c) || !(c.flags & VALUE_INT) ||
	    values_wide_int(v, object, &w) < 0 || w.magnitude > UINT64_MAX)
		return false;
	*ret = w.negative ? 0 - (uint64_t)w.magnitude : (uint64_t)w.magnitude;
	return true;
}

char *values_str(struct values *v, uint64_t object, size_t max)
{
	struct value_class c;
	char *text = NULL;
	uint64_t length;

	if (!values_class(v, object, &c) || strcmp(c.name, "str") != 0 ||
	    python_str_start(v->l, &v->mem, object, max, &text, &length) < 0)
		return NULL;
	return text;
}

/* ---- threads ----------------------------------------------------------------------------- */

void values_each_interpreter(struct values *v, values_interp_fn fn, void *ctx)
{
	uint64_t head = python_interp_head(v->py), interp = values_word(v, head);

	for (unsigned int i = 0; interp && i < INTERPRETERS_MAX; i++) {
		fn(ctx, interp);
		interp = values_word(v, interp + v->l->interp_next);
	}
}

struct threads {
	struct values *v;
	values_thread_fn fn;
	void *ctx;
	unsigned int n;
};

static void each_thread_of(void *ctx, uint64_t interp)
{
	struct threads *t = ctx;
	uint64_t tstate = values_word(t->v, interp + t->v->l->interp_threads_head);

	while (tstate && t->n++ < THREADS_MAX) {
		t->fn(t->ctx, interp, tstate);
		tstate = values_word(t->v, tstate + t->v->l->ts_next);
	}
}

void values_each_thread(struct values *v, values_thread_fn fn, void *ctx)
{
	struct threads t = {v, fn, ctx, 0};

	values_each_interpreter(v, each_thread_of, &t);
}
