/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports and random snapshots for the tests of formats. */
#ifndef PYPROF_TESTS_HARNESS_REPORTS_H
#define PYPROF_TESTS_HARNESS_REPORTS_H

#include "format/format.h"

/* The output of a format, to be freed; size may be NULL. */
char *report_new(const char *format, const struct snapshot *s, const struct format_opts *o,
		 size_t *size);

/* Write a report to dir/name. */
void report_save(const char *format, const struct snapshot *s, const struct format_opts *o,
		 const char *dir, const char *name);

/*
 * Run a Python script on a report and return its output, to be freed. The script's argv[1] is a
 * directory with the report under this name, argv[2] is arg, if not NULL.
 */
char *report_read(const char *format, const struct snapshot *s, const struct format_opts *o,
		  const char *name, const char *script, const char *arg);

/*
 * A snapshot like a real one: recursion, threads, functions running since before the attach, names
 * that differ in their qualified name only, built-ins, non-Latin names. The same seed gives the
 * same snapshot.
 */
struct snapshot *snapshot_random(unsigned int seed);

/* Malicious names; NULL ends the list. Every function of snapshot_hostile() has one. */
extern const char *const hostile_names[];
struct snapshot *snapshot_hostile(void);

/* Is it valid UTF-8 without control characters other than line feeds? (DEL is allowed.) */
bool report_harmless(const char *report, size_t size);

/* A random number below n. */
unsigned int random_below(unsigned int *seed, unsigned int n);

#endif
