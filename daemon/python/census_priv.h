/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of a census: recognizes type objects, and determines object sizes and type names (private
 * to python/).
 */
#ifndef PYPROF_PYTHON_CENSUS_PRIV_H
#define PYPROF_PYTHON_CENSUS_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "python/census.h"
#include "python/pages.h"

/* The bytes that are read of an object at once. */
#define CENSUS_OBJECT_BYTES 48u

enum census_storage { CENSUS_PLAIN, CENSUS_LIST, CENSUS_DICT, CENSUS_SET };

struct census_class {
	uint64_t addr, base, item; /* base, item: bytes of an object and of each of its items */
	uint64_t count, bytes;
	uint64_t name, dict; /* addresses of tp_name and tp_dict */
	enum census_storage storage;
	bool heap; /* created by a class statement or at runtime: tp_name lacks the module */
};

struct census_types {
	const struct layout *layout;
	struct pages *pages;
	uint64_t type_type; /* address of PyType_Type */
	struct map by_addr;
	struct census_class *v;
	uint32_t n, room;
};

void census_types_deinit(struct census_types *t);

/*
 * Finds or adds the type at addr; *ret: its index. -ENOENT: not a type; -E2BIG: too many; -ENOMEM.
 */
int census_types_find(struct census_types *t, uint64_t addr, uint32_t *ret);

/* Returns the size in bytes of the object at addr, the first bytes of which are in `object`. */
uint64_t census_types_size(struct census_types *t, const struct census_class *c, uint64_t addr,
			   const uint8_t object[CENSUS_OBJECT_BYTES]);

/* Returns "module.name", or the readable part of it, malloc'd; NULL: out of memory. */
char *census_types_name(struct census_types *t, const struct census_class *c);

#endif
