/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads Python objects of a target: types, attributes, dicts, sets, ints, short representations
 * (private to python/). The target runs and may contain anything: all reads and loops are bounded,
 * and each object's type is checked before its contents are used.
 */
#ifndef PYPROF_PYTHON_VALUES_H
#define PYPROF_PYTHON_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "python/pages.h"
#include "python/python.h"

#define VALUE_CLASS_MAX 96 /* bytes of a type's name, with NUL */

struct values {
	struct memory mem; /* first: reads through the cache */
	const struct python *py;
	const struct layout *l;
	struct pages *pages;	  /* owned */
	uint64_t steps;		  /* number of reads, cached or not */
	uint64_t interp, modules; /* see values_modules: the last result */
	uint16_t head;		  /* bytes of an object's header */
};

/* py, mem: borrowed. max_reads: see pages_new. NULL: out of memory. */
struct values *values_new(const struct python *py, const struct memory *mem, uint64_t max_reads);
void values_free(struct values *v);
DEFINE_FREEP(struct values, values_free)

/* Forgets what was read, so that it is read again. */
void values_refresh(struct values *v);

/* Fails with -E2BIG after VALUES_STEPS_MAX reads, which take a few seconds. */
#define VALUES_STEPS_MAX (UINT64_C(1) << 26)
int values_read(struct values *v, uint64_t addr, void *out, size_t n);
/* 0 if unreadable. */
uint64_t values_word(struct values *v, uint64_t addr);

struct value_class {
	uint64_t addr, flags, basicsize, base;
	int64_t dictoffset;
	char name[VALUE_CLASS_MAX]; /* tp_name, UTF-8 without control characters */
};

#define VALUE_INT   (UINT64_C(1) << 24) /* flags of subclasses of these types */
#define VALUE_LIST  (UINT64_C(1) << 25)
#define VALUE_TUPLE (UINT64_C(1) << 26)
#define VALUE_BYTES (UINT64_C(1) << 27)
#define VALUE_STR   (UINT64_C(1) << 28)
#define VALUE_DICT  (UINT64_C(1) << 29)
#define VALUE_TYPE  (UINT64_C(1) << 31)

/* Reads the type of the object at addr. false: it is no object. */
bool values_class(struct values *v, uint64_t object, struct value_class *ret);
/* Returns the type or the one of its bases (the first of each) that has this tp_name. false: none. */
bool values_base(struct values *v, const struct value_class *c, const char *name,
		 struct value_class *ret);
bool values_is_a(struct values *v, const struct value_class *c, const char *name);

/*
 * Calls fn for each entry of a dict, or element of a set, list or tuple (key 0), as long as fn
 * returns true. false: it is not one, or cannot be read.
 */
typedef bool (*values_fn)(void *ctx, uint64_t key, uint64_t value);
bool values_each_item(struct values *v, uint64_t dict, values_fn fn, void *ctx);
bool values_each(struct values *v, uint64_t container, values_fn fn, void *ctx);

/* The value of a str key, attribute of an instance, or global of an imported module. 0: none. */
uint64_t values_get(struct values *v, uint64_t dict, const char *key);
uint64_t values_attribute(struct values *v, uint64_t object, const char *name);
uint64_t values_global(struct values *v, uint64_t interp, const char *module, const char *name);
/* sys.modules of an interpreter. 0: not found. */
uint64_t values_modules(struct values *v, uint64_t interp);

/* An int of up to 120 bits. -E2BIG: it has more, up to `bits`. The object must be an int. */
struct wide_int {
	unsigned __int128 magnitude;
	uint64_t bits;
	bool negative;
};
int values_wide_int(struct values *v, uint64_t object, struct wide_int *ret);
/* An int of up to 64 bits, as two's complement. */
bool values_int(struct values *v, uint64_t object, uint64_t *ret);
/* Whether a str has this text. */
bool values_equal(struct values *v, uint64_t str, const char *text);
/* The first characters of a str, malloc'd; NULL: not a str. */
char *values_str(struct values *v, uint64_t object, size_t max);

/* Writes what repr() does for simple values, else "<type>" or "<type of N>", shortened with "...". */
void values_repr(struct values *v, uint64_t object, char *out, size_t size);

/* Calls fn for each thread state. Lists that change meanwhile may lose threads. */
typedef void (*values_thread_fn)(void *ctx, uint64_t interp, uint64_t tstate);
void values_each_thread(struct values *v, values_thread_fn fn, void *ctx);
typedef void (*values_interp_fn)(void *ctx, uint64_t interp);
void values_each_interpreter(struct values *v, values_interp_fn fn, void *ctx);

#endif
