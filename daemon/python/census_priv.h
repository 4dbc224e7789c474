/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of a census: which addresses are types, how large their objects are, and their names
 * (private to python/). */
#ifndef PYPROF_PYTHON_CENSUS_PRIV_H
#define PYPROF_PYTHON_CENSUS_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "python/census.h"
#include "python/pages.h"

/* What is read of an object in one go. */
#define CENSUS_OBJECT_BYTES 48u

enum census_storage { CENSUS_PLAIN, CENSUS_LIST, CENSUS_DICT, CENSUS_SET };

struct census_class {
	uint64_t addr, base, item; /* bytes of an object and of each of its items */
	uint64_t count, bytes;
	uint64_t name, dict; /* addresses of tp_name and tp_dict */
	enum census_storage storage;
	bool heap; /* made by a class statement or at runtime: tp_name lacks the module */
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

/* The index of the type at addr. -ENOENT: no type is there; -E2BIG: too many; -ENOMEM. */
int census_types_find(struct census_types *t, uint64_t addr, uint32_t *ret);

/* Bytes of the object at addr, of which `object` was read. */
uint64_t census_types_size(struct census_types *t, const struct census_class *c, uint64_t addr,
			   const uint8_t object[CENSUS_OBJECT_BYTES]);

/* "module.name", or as much of it as can be read; malloc'd. NULL: no memory. */
char *census_types_name(struct census_types *t, const struct census_class *c);

#endif
