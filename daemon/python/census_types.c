// SPDX-License-Identifier: BSD-2-Clause
/*
 * Types of a census: see census_priv.h. The offsets are those of GIL builds, and apply from 3.6 to
 * 3.15 unless their use depends on the version. Source: Include/cpython/object.h, listobject.h,
 * setobject.h and dictobject.h.
 */
#include "python/census_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8_clean.h"
#include "python/dict_keys.h"

#define TYPE_BYTES	176u
#define TYPE_NAME	24u
#define TYPE_BASICSIZE	32u
#define TYPE_ITEMSIZE	40u
#define TYPE_FLAGS	168u
#define TYPE_DICT	264u
#define OBJECT_SIZE	16u /* ob_size */
#define LIST_ALLOCATED	32u
#define DICT_KEYS	32u
#define DICT_VALUES	40u
#define SET_MASK	32u
#define SET_TABLE	40u
#define SET_SMALL_TABLE 64u
#define SET_ENTRY	16u

#define FLAG_MANAGED_WEAKREF (1u << 3) /* 3.12+ */
#define FLAG_MANAGED_DICT    (1u << 4) /* 3.11+ */
#define FLAG_HEAP	     (1u << 9)
#define FLAG_LIST	     (1u << 25)
#define FLAG_DICT	     (1u << 29)
#define FLAG_TYPE	     (1u << 31)

#define METATYPES     8u	 /* limit of metatypes between a type and `type` */
#define BASE_MAX      (1u << 24) /* limit of basicsize */
#define ITEM_MAX      (1u << 16)
#define MODULE_SEARCH 64u /* limit of entries of a type's dict */
#define STORAGE_MAX   (UINT64_C(1) << 46)

static uint64_t u64_at(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

void census_types_deinit(struct census_types *t)
{
	map_deinit(&t->by_addr);
	free(t->v);
	t->v = NULL;
	t->n = t->room = 0;
}

/* Returns whether the metatype is `type` or an instance of a metatype that is, recursively. */
static bool is_type(struct census_types *t, uint64_t metatype)
{
	uint8_t block[TYPE_BYTES];

	for (unsigned int i = 0; i < METATYPES && metatype != t->type_type; i++) {
		if (metatype % 8 || pages_read_fresh(t->pages, metatype, block, sizeof(block)) ||
		    !(u64_at(block, TYPE_FLAGS) & FLAG_TYPE))
			return false;
		metatype = u64_at(block, t->layout->bpf.object_type);
	}
	return metatype == t->type_type;
}

/*
 * Returns the bytes before an object: the collector's header, and since 3.11 its dict and weak
 * references.
 */
static uint64_t before_object(const struct layout *l, uint64_t flags)
{
	uint64_t managed = l->minor >= 12   ? FLAG_MANAGED_DICT | FLAG_MANAGED_WEAKREF
			   : l->minor == 11 ? FLAG_MANAGED_DICT
					    : 0;

	return l->gc_head + (flags & managed ? 16u : 0);
}

static bool is_set(struct census_types *t, uint64_t name)
{
	char text[10] = {0};

	return pages_read(t->pages, name, text, sizeof(text) - 1) == 0 &&
	       (strcmp(text, "set") == 0 || strncmp(text, "frozenset", 9) == 0);
}

static int read_type(struct census_types *t, uint64_t addr, struct census_class *ret)
{
	uint8_t block[TYPE_BYTES];
	uint64_t flags, base, item;

	if (addr % 8 || pages_read_fresh(t->pages, addr, block, sizeof(block)))
		return -ENOENT;
	flags = u64_at(block, TYPE_FLAGS);
	base = u64_at(block, TYPE_BASICSIZE);
	item = u64_at(block, TYPE_ITEMSIZE);
	if (!u64_at(block, 0) || base < 16 || base > BASE_MAX || item > ITEM_MAX ||
	    !is_type(t, u64_at(block, t->layout->bpf.object_type)))
		return -ENOENT;
	*ret = (struct census_class){
		.addr = addr,
		.base = base + before_object(t->layout, flags),
		.item = item,
		.name = u64_at(block, TYPE_NAME),
		.heap = flags & FLAG_HEAP,
	};
	(void)pages_read(t->pages, addr + TYPE_DICT, &ret->dict, sizeof(ret->dict));
	ret->storage = flags & FLAG_LIST		    ? CENSUS_LIST
		       : flags & FLAG_DICT		    ? CENSUS_DICT
		       : !ret->heap && is_set(t, ret->name) ? CENSUS_SET
							    : CENSUS_PLAIN;
	return 0;
}

static int add(struct census_types *t, const struct census_class *c, uint32_t *ret)
{
	if (t->n == CENSUS_TYPES_MAX)
		return -E2BIG;
	if (t->n == t->room) {
		uint32_t room = t->room ? 2 * t->room : 256;
		struct census_class *v = reallocarray(t->v, room, sizeof(*v));

		if (!v)
			return -ENOMEM;
		t->v = v;
		t->room = room;
	}
	if (map_put(&t->by_addr, c->addr, t->n) < 0)
		return -ENOMEM;
	t->v[t->n] = *c;
	*ret = t->n++;
	return 0;
}

int census_types_find(struct census_types *t, uint64_t addr, uint32_t *ret)
{
	struct census_class c;
	int r;

	if (map_get(&t->by_addr, addr, ret))
		return 0;
	r = read_type(t, addr, &c);
	return r < 0 ? r : add(t, &c, ret);
}

/* ---- sizes ------------------------------------------------------------------------------- */

/* Returns n * bytes, where n is a number of items or slots; 0 if the result is implausible. */
static uint64_t times(uint64_t n, uint64_t bytes)
{
	int64_t v = (int64_t)n;

	n = v < 0 ? 0 - n : n; /* ob_size is negative in some types */
	return n > STORAGE_MAX / (bytes ? bytes : 1) ? 0 : n * bytes;
}

static uint64_t dict_storage(struct census_types *t, const uint8_t *object)
{
	struct dict_keys k;

	if (!dict_keys_read(t->pages, t->layout, u64_at(object, DICT_KEYS), &k))
		return 0;
	return (k.own ? k.bytes : 0) + (u64_at(object, DICT_VALUES) ? 8 * k.usable : 0);
}

static uint64_t set_storage(uint64_t addr, const uint8_t *object)
{
	uint64_t mask = u64_at(object, SET_MASK);

	if (u64_at(object, SET_TABLE) == addr + SET_SMALL_TABLE || mask > STORAGE_MAX)
		return 0;
	return times(mask + 1, SET_ENTRY);
}

uint64_t census_types_size(struct census_types *t, const struct census_class *c, uint64_t addr,
			   const uint8_t object[CENSUS_OBJECT_BYTES])
{
	uint64_t size = c->base + (c->item ? times(u64_at(object, OBJECT_SIZE), c->item) : 0);

	switch (c->storage) {
	case CENSUS_LIST:
		return size + times(u64_at(object, LIST_ALLOCATED), 8);
	case CENSUS_DICT:
		return size + dict_storage(t, object);
	case CENSUS_SET:
		return size + set_storage(addr, object);
	case CENSUS_PLAIN:
		break;
	}
	return size;
}

/* ---- names ------------------------------------------------------------------------------- */

/* Reads a NUL-terminated string of unknown length, which may end just before an unmapped page. */
static void read_text(struct census_types *t, uint64_t addr, char out[CENSUS_NAME_MAX])
{
	size_t n = 0;

	while (n < CENSUS_NAME_MAX - 1 && pages_read(t->pages, addr + n, out + n, 1) == 0 && out[n])
		n++;
	out[n] = '\0';
}

static bool is_module_key(struct census_types *t, const struct memory *mem, uint64_t key)
{
	_cleanup_free_ char *text = NULL;

	return python_str_read(t->layout, mem, key, &text, NULL) == 0 &&
	       strcmp(text, "__module__") == 0;
}

/* Access to the cached pages for functions that read objects. */
struct page_memory {
	struct memory mem; /* first, so that it can be cast */
	struct pages *pages;
};

static int read_page_memory(const struct memory *mem, uint64_t addr, void *out, size_t n)
{
	const struct page_memory *m = (const struct page_memory *)mem;

	return n > 4096 ? -EFAULT : pages_read(m->pages, addr, out, n);
}

/*
 * Returns `__module__` from the dict of a type, where a class statement stores it first. malloc'd;
 * NULL: none.
 */
static char *read_module(struct census_types *t, uint64_t dict)
{
	const struct page_memory m = {.mem.read = read_page_memory, .pages = t->pages};
	uint8_t object[CENSUS_OBJECT_BYTES];
	struct dict_keys k;
	char *text = NULL;

	if (!dict || pages_read(t->pages, dict, object, sizeof(object)) ||
	    !dict_keys_read(t->pages, t->layout, u64_at(object, DICT_KEYS), &k) ||
	    u64_at(object, DICT_VALUES))
		return NULL;
	for (uint64_t i = 0; i < k.used && i < MODULE_SEARCH; i++) {
		uint64_t pair[2];

		if (pages_read(t->pages, k.entries + i * k.entry + k.key, pair, sizeof(pair)))
			return NULL;
		if (!is_module_key(t, &m.mem, pair[0]))
			continue;
		(void)python_str_read(t->layout, &m.mem, pair[1], &text, NULL);
		return text;
	}
	return NULL;
}

char *census_types_name(struct census_types *t, const struct census_class *c)
{
	_cleanup_free_ char *module = NULL;
	char name[CENSUS_NAME_MAX], whole[2 * CENSUS_NAME_MAX], clean[CENSUS_NAME_MAX];

	read_text(t, c->name, name);
	if (c->heap && !strchr(name, '.'))
		module = read_module(t, c->dict);
	if (module && strcmp(module, "builtins") != 0)
		snprintf(whole, sizeof(whole), "%.*s.%s", (int)CENSUS_NAME_MAX - 1, module, name);
	else
		snprintf(whole, sizeof(whole), "%s", name[0] ? name : "?");
	utf8_clean(whole, clean, sizeof(clean));
	for (char *p = clean; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return strdup(clean);
}
