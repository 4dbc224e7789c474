/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comparison of our call counts with cProfile's. A function is (filename, first line, name), as in
 * cProfile's reports; proto.py defines which functions of run.py and proto.py are compared.
 */
#ifndef PYPROF_TESTS_HARNESS_COUNTS_H
#define PYPROF_TESTS_HARNESS_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/interpreters.h"
#include "snapshot/snapshot.h"
#include "stats/view.h"

struct counts {
	uint32_t functions; /* number of compared functions */
	uint64_t calls;	    /* total according to cProfile */
	uint32_t differing; /* differ in ncalls or pcalls; each is printed */
};

/*
 * Compare with the output of run.py --cprofile. Printed lines begin with `label`. For a snapshot in
 * mode count, which has no primitive calls, compare ncalls only.
 */
struct counts counts_compare(const struct snapshot *s, const char *cprofile_json,
			     const char *label);
/* Compare with the output of run.py --monitoring, which has no primitive calls. */
struct counts counts_compare_calls(const struct snapshot *s, const char *json, const char *label);

/*
 * Run a program of tests/targets under cProfile and pyprof, and compare. dir: for temporary files.
 * Returns true if nothing differs, nothing was lost and all events matched. Prints one line.
 */
bool counts_equal(const struct interpreter *py, const char *program, const char *dir);
/* The same in modes trace and count, and the calls per caller and callee are equal in both. */
bool counts_equal_in_modes(const struct interpreter *py, const char *program, const char *dir);

/*
 * Compare the number of calls per caller and callee. In the result, functions are edges; `theirs`
 * is cProfile's snapshot.
 */
struct counts counts_edges(const struct snapshot *ours, const struct snapshot *theirs,
			   const char *label);

/*
 * Compare with a program's own counts, {"name": calls, ...}. Returns the number of functions that
 * differ; each is printed.
 */
uint32_t counts_differing(const struct snapshot *s, const char *json);

/* Sum of the view's rows of functions with this name; zeros if there are none. */
struct view_row counts_named(const struct view *v, const char *name);

#endif
