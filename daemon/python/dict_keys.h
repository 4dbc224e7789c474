/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys object of a dict in a target's memory (private to python/). */
#ifndef PYPROF_PYTHON_DICT_KEYS_H
#define PYPROF_PYTHON_DICT_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "python/layout.h"
#include "python/pages.h"

/* Its header, index table and entries. */
struct dict_keys {
	uint64_t entries, usable, used; /* address; capacity; entries used so far */
	uint64_t bytes;
	uint32_t entry, key; /* bytes of an entry; offset of the key in it; the value follows */
	bool own;	     /* not shared with other dicts */
};

/* Returns false if there cannot be a keys object at addr. */
bool dict_keys_read(struct pages *pages, const struct layout *l, uint64_t addr,
		    struct dict_keys *ret);

#endif
