/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call counts, ours beside cProfile's. A function is (filename, first line, name), as in
 * cProfile's reports; which of run.py's and proto.py's functions are compared, proto.py says.
 */
#ifndef PYPROF_TESTS_HARNESS_COUNTS_H
#define PYPROF_TESTS_HARNESS_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/interpreters.h"
#include "snapshot/snapshot.h"
#include "stats/view.h"

struct counts {
	uint32_t functions; /* compared */
	uint64_t calls;	    /* as cProfile counts them */
	uint32_t differing; /* in ncalls or pcalls; each is printed */
};

/* Compare with what run.py --cprofile wrote. Lines printed begin with who. Of a snapshot that was
 * counted, which knows no primitive calls, ncalls only. */
struct counts counts_compare(const struct snapshot *s, const char *cprofile_json, const char *who);
/* The same with what run.py --monitoring wrote, which knows of no primitive calls. */
struct counts counts_compare_calls(const struct snapshot *s, const char *json, const char *who);

/*
 * Run a program of tests/targets under cProfile and under us, and compare. dir: for files. True:
 * nothing differs, nothing was lost, everything matched. Prints one line.
 */
bool counts_equal(const struct interpreter *py, const char *program, const char *dir);

/* Compare how often who called whom: functions are edges, and cProfile is `theirs`. */
struct counts counts_edges(const struct snapshot *ours, const struct snapshot *theirs,
			   const char *who);

/* Compare with what a program says of itself, {"name": calls, ...}: how many differ; each is printed. */
uint32_t counts_differing(const struct snapshot *s, const char *json);

/* What a view says of the functions of that name in all: 0s if there are none. */
struct view_row counts_named(const struct view *v, const char *name);

#endif
