/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A census: counts the objects in the lists of a process's garbage collector, by type, from outside
 * while the process runs.
 *
 * Containers and instances are in these lists; str, bytes, int and float are not (CPython tracks
 * only objects that can be part of a cycle). The process changes the lists during the walk. An
 * object that moves to another list is counted once. If the walk loses a list, it returns to a
 * recent object that is still in it, or walks the list from the other end. Lists of which a part
 * was still not walked are reported (torn). Every step is bounded, so the walk ends whatever the
 * memory contains.
 */
#ifndef PYPROF_PYTHON_CENSUS_H
#define PYPROF_PYTHON_CENSUS_H

#include <stdint.h>
#include <stdlib.h>

#include "base/diag.h"
#include "python/python.h"
#include "target/memory.h"

#define CENSUS_TYPES_MAX 65536u
#define CENSUS_NAME_MAX	 256u /* including the terminating NUL */

struct census_type {
	char *name; /* owned, UTF-8: "list", "collections.OrderedDict"; unique within a census */
	uint64_t count;
	/*
	 * The memory of the objects: basicsize, items, the collector's header, and what list, set,
	 * frozenset and dict allocate for their elements. Not included: instance attributes outside
	 * of a dict (3.11+), and buffers of other types.
	 */
	uint64_t bytes;
};

struct census {
	struct census_type *types; /* owned; most frequent first */
	uint32_t n;
	uint32_t interpreters;
	uint32_t lists;
	uint32_t passes; /* walks over all lists; the results are those of the last one */
	uint32_t torn;	 /* lists of which a part could not be walked */
	uint64_t objects, bytes;
	uint64_t unconfirmed; /* counted although a link did not match (a collection was running) */
	uint64_t other;	      /* objects of types beyond CENSUS_TYPES_MAX */
	bool limited;	      /* stopped at the limit of objects, reads or time */
};

void census_deinit(struct census *c);

/* How long a census may take: less than INSPECT_CENSUS_MS, after which nothing of it is known. */
#define CENSUS_NS UINT64_C(40000000000)

/*
 * Takes a census for at most limit_ns, usually CENSUS_NS; the caller frees *ret with
 * census_deinit(). Exit code 5: the lists of this build are unknown (free-threaded builds have none)
 * or were not found. -ESRCH, -EPERM, -EFAULT: the process's memory cannot be read. Needs py->bias,
 * runtime and code_type.
 */
int python_census(const struct python *py, const struct memory *mem, uint64_t limit_ns,
		  struct census *ret, struct diag *diag);

/*
 * Calls fn for each object in the lists, with the address of its type; more than once if lists were
 * walked several times. The same errors.
 */
typedef void (*census_fn)(void *ctx, uint64_t object, uint64_t type);
int python_census_each(const struct python *py, const struct memory *mem, uint64_t limit_ns,
		       census_fn fn, void *ctx);

#endif
