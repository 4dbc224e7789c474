/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports and random snapshots for the tests of formats. */
#ifndef PYPROF_TESTS_HARNESS_REPORTS_H
#define PYPROF_TESTS_HARNESS_REPORTS_H

#include "format/format.h"

/* What a format writes, to be freed; size may be NULL. */
char *report_new(const char *format, const struct snapshot *s, const struct format_opts *o,
		 size_t *size);

/* The same into dir/name. */
void report_save(const char *format, const struct snapshot *s, const struct format_opts *o,
		 const char *dir, const char *name);

/*
 * What a Python script makes of it, to be freed. The script's argv[1] is a directory in which the
 * report has this name, argv[2] is arg, if that is not NULL.
 */
char *report_read(const char *format, const struct snapshot *s, const struct format_opts *o,
		  const char *name, const char *script, const char *arg);

/*
 * A snapshot that looks like a real one: recursion, threads, functions running since before the
 * attach, names that differ in their qualified name only, built-ins, names in other scripts. The
 * same seed gives the same snapshot.
 */
struct snapshot *snapshot_random(unsigned int seed);

/* Names that try to do harm; NULL ends the list. Every snapshot_hostile() function has one. */
extern const char *const hostile_names[];
struct snapshot *snapshot_hostile(void);

/* Nothing in it that a terminal acts on, line feeds excepted, and valid UTF-8? (DEL does nothing.) */
bool report_harmless(const char *report, size_t size);

/* A random number below n. */
unsigned int random_below(unsigned int *seed, unsigned int n);

#endif
