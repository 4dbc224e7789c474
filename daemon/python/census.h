/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A census: the objects in the lists of a process's garbage collector, by type, read from outside while the
 * process runs.
 *
 * Containers and instances are in these lists; str, bytes, int and float are not (CPython tracks only
 * objects that can be part of a cycle). The process changes the lists during the walk: an object
 * that moves to another list is counted once, and where a list leads astray the walk goes back to
 * an object that still is in it, or comes from the list's other end. What remains uncounted is
 * reported (torn). Every step is bounded; nothing that the memory holds makes the walk fail to end.
 */
#ifndef PYPROF_PYTHON_CENSUS_H
#define PYPROF_PYTHON_CENSUS_H

#include <stdint.h>
#include <stdlib.h>

#include "base/diag.h"
#include "python/python.h"
#include "target/memory.h"

#define CENSUS_TYPES_MAX 65536u
#define CENSUS_NAME_MAX	 256u /* with its end */

struct census_type {
	char *name; /* owned, UTF-8: "list", "collections.OrderedDict"; types of one name are one row */
	uint64_t count;
	/*
	 * Their memory: basicsize, items, the collector's head, and what list, set, frozenset and
	 * dict allocate for their elements. Not: instance attributes outside a dict (3.11+), buffers
	 * of other types.
	 */
	uint64_t bytes;
};

struct census {
	struct census_type *types; /* owned; most objects first */
	uint32_t n;
	uint32_t interpreters;
	uint32_t lists;
	uint32_t passes; /* walks over all lists; the last one is what counts */
	uint32_t torn;	 /* lists of which a part could not be walked */
	uint64_t objects, bytes;
	uint64_t unconfirmed; /* objects counted without both links (a collection was running) */
	uint64_t other;	      /* objects of types beyond CENSUS_TYPES_MAX */
	bool limited;	      /* stopped at the limit of objects or reads */
};

void census_deinit(struct census *c);

/*
 * Exit code 5 where the lists are not known: free-threaded builds have none. -ESRCH, -EPERM,
 * -EFAULT: the process's memory cannot be read. Needs py->bias, runtime and code_type.
 */
int python_census(const struct python *py, const struct memory *mem, struct census *ret,
		  struct diag *diag);

#endif
