/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The optional figures of a calling context: one row of COLUMN_TABLE each. The calling-context
 * tree, snapshots, views, merging, folding and all formats iterate over this table. To add a
 * column, add a row here and the code that measures it (calltree_add(), profile_keep_columns()).
 *
 * Figures that every context has (calls, self time, shortest and longest activation) are not
 * columns: they are in struct node and struct snapshot_node, where one event touches one cache
 * line.
 */
#ifndef PYPROF_BASE_COLUMN_H
#define PYPROF_BASE_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pyprof/bpf_abi.h"

/*
 * X(id, name, group, text, unit, merge). Rows of one group are adjacent. name is the key in the
 * group's JSON object; the column in CSV and HTML is GROUP_name, or name if the group is "". The
 * rows of "counters" are in the order of enum pyp_counter.
 */
#define COLUMN_TABLE(X)                                                                            \
	X(vcsw, "vcsw", "counters", "voluntary context switches", COLUMN_COUNT, COLUMN_SUM)        \
	X(ivcsw, "ivcsw", "counters", "involuntary context switches", COLUMN_COUNT, COLUMN_SUM)    \
	X(minflt, "minflt", "counters", "minor page faults", COLUMN_COUNT, COLUMN_SUM)             \
	X(majflt, "majflt", "counters", "major page faults", COLUMN_COUNT, COLUMN_SUM)             \
	X(rbytes, "rbytes", "counters", "bytes read", COLUMN_BYTES, COLUMN_SUM)                    \
	X(wbytes, "wbytes", "counters", "bytes written", COLUMN_BYTES, COLUMN_SUM)                 \
	X(gil, "gil", "waits", "waited for the GIL", COLUMN_NS, COLUMN_SUM)                        \
	X(lock, "lock", "waits", "waited for a lock", COLUMN_NS, COLUMN_SUM)                       \
	X(runnable, "runnable", "waits", "waited for a CPU", COLUMN_NS, COLUMN_SUM)                \
	X(io, "io", "waits", "waited for I/O", COLUMN_NS, COLUMN_SUM)                              \
	X(sleep, "sleep", "waits", "slept", COLUMN_NS, COLUMN_SUM)                                 \
	X(fault, "fault", "waits", "waited for pages", COLUMN_NS, COLUMN_SUM)                      \
	X(process, "process", "waits", "waited for child processes", COLUMN_NS, COLUMN_SUM)        \
	X(other, "other", "waits", "waited for other system calls", COLUMN_NS, COLUMN_SUM)         \
	X(io_disk, "io_disk", "waits", "I/O: files", COLUMN_NS, COLUMN_SUM)                        \
	X(io_socket, "io_socket", "waits", "I/O: sockets", COLUMN_NS, COLUMN_SUM)                  \
	X(io_poll, "io_poll", "waits", "I/O: poll, select, epoll", COLUMN_NS, COLUMN_SUM)          \
	X(io_pipe, "io_pipe", "waits", "I/O: pipes", COLUMN_NS, COLUMN_SUM)                        \
	X(io_device, "io_device", "waits", "I/O: other", COLUMN_NS, COLUMN_SUM)                    \
	X(gil_held_ns, "gil_held_ns", "", "held the GIL while others waited", COLUMN_NS,           \
	  COLUMN_SUM)                                                                              \
	X(grown, "grown", "memory", "growth of resident memory", COLUMN_BYTES, COLUMN_SUM)         \
	X(shrunk, "shrunk", "memory", "resident memory given back", COLUMN_BYTES, COLUMN_SUM)      \
	X(mapped, "mapped", "memory", "mapped in blocks of 128 KiB and more", COLUMN_BYTES,        \
	  COLUMN_SUM)                                                                              \
	X(unmapped, "unmapped", "memory", "unmapped in blocks of 128 KiB and more", COLUMN_BYTES,  \
	  COLUMN_SUM)                                                                              \
	X(large, "large", "memory", "blocks of 128 KiB and more mapped", COLUMN_COUNT, COLUMN_SUM) \
	X(live, "live", "memory", "mapped in blocks of 128 KiB and more and not unmapped",         \
	  COLUMN_BYTES, COLUMN_SUM)                                                                \
	X(pools, "pools", "memory", "pools of small objects used for the first time",              \
	  COLUMN_COUNT, COLUMN_SUM)

enum column_id {
#define PYP_X(id, name, group, text, unit, merge) COLUMN_##id,
	COLUMN_TABLE(PYP_X)
#undef PYP_X
		COLUMNS
};

enum column_unit { COLUMN_NS, COLUMN_COUNT, COLUMN_BYTES };

/* How to merge the figures of two contexts, or of a context and its callees: sum or maximum. */
enum column_merge { COLUMN_SUM, COLUMN_MAX };

struct column {
	const char *name;
	const char *group; /* "": its JSON key is a member of the row itself */
	const char *text;  /* description for users */
	enum column_unit unit;
	enum column_merge merge;
};

extern const struct column column_table[COLUMNS];
/* "ns", "count", "bytes"; indexed by enum column_unit. */
extern const char *const column_units[];

/* A set of columns is a bit mask. */
#define COLUMN_BIT(c) (UINT64_C(1) << (c))
_Static_assert(COLUMNS <= 64, "a set of columns is 64 bits");
/* The columns of resource counters (bits by enum pyp_counter). */
#define COLUMN_COUNTERS(counters)                                                                  \
	((uint64_t)((counters) & ((1u << PYP_COUNTERS) - 1)) << COLUMN_vcsw)
/*
 * The reasons for waiting, from FIRST to before END, add up to wall time minus CPU time. The other
 * columns of the group add up to "io".
 */
#define COLUMN_WAITS_FIRST  COLUMN_gil
#define COLUMN_WAITS_END    (COLUMN_other + 1)
#define COLUMN_WAITS	    (COLUMN_BIT(COLUMN_io_device + 1) - COLUMN_BIT(COLUMN_gil))
#define COLUMN_MEMORY_FIRST COLUMN_grown
#define COLUMN_MEMORY_END   (COLUMN_pools + 1)
_Static_assert(COLUMN_wbytes - COLUMN_vcsw == PYP_COUNTER_wbytes, "in the order of the ABI");

/*
 * Finds the next group that has a column in the set, starting with column `first`. Returns the
 * group's first column, with *end set to the column after its last one; COLUMNS: there is none.
 */
int column_group_next(uint64_t set, int first, int *end);

/* Returns the set of all columns of a group; 0: no such group. */
uint64_t column_group(const char *group);
/* Returns the column of this group and name, or COLUMNS. */
int column_find(const char *group, const char *name);
/* Writes "GROUP_name", or "name" if the group is "", to buf. Returns buf. */
#define COLUMN_KEY_MAX 64
const char *column_key(int column, char buf[COLUMN_KEY_MAX]);

/* Merges a figure into another one by the column's rule. Sums wrap. */
static inline void column_merge(int column, uint64_t *into, uint64_t value)
{
	if (column_table[column].merge == COLUMN_SUM)
		*into += value;
	else if (value > *into)
		*into = value;
}

#endif
