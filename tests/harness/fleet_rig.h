/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles of simulated hosts in a real ClickHouse, compared with the merge of the same files. All
 * functions fail the test if they cannot do it.
 */
#ifndef PYPROF_TESTS_HARNESS_FLEET_RIG_H
#define PYPROF_TESTS_HARNESS_FLEET_RIG_H

#include <jansson.h>
#include <stdint.h>

#include "harness/clickhouse.h"
#include "harness/daemon.h"
#include "snapshot/snapshot.h"

#define FLEET_HOSTS 20

extern struct pyprofd fleet_d; /* never started: its directory only */
extern struct clickhouse fleet_server;
extern char fleet_files[FLEET_HOSTS][128];
/* When the interval of the first host begins, and by how much each other one is later */
extern uint64_t fleet_start_ns, fleet_step_ns;
/* The name of the current database */
extern char fleet_rig_database[16];

/* One server for a program's tests, as its start takes seconds of CPU time: a Criterion test runs them all. */
void fleet_setup(void);
void fleet_teardown(void);
/* A test begins with a new database, which `fleet init` has not made yet, of this name for the output. */
void fleet_begin(const char *test);
/* Sets the address of the current database for pyprofctl. */
void fleet_use(int port);
/* The same as a URL for a daemon; returns out. */
const char *fleet_url(int port, char *out, size_t size);
/* The answer to a question in SQL, to be freed */
char *fleet_ask(const char *sql, ...) __attribute__((format(printf, 1, 2)));

/* Writes the host's file. Takes the snapshot. */
void fleet_save(struct snapshot *s, unsigned int host);
/*
 * Makes all files: most of them are random, some of a real program, traced, or all, in the given mode. The program runs
 * once per mode.
 */
void fleet_make_files(const char *mode);
/* Inserts those of hosts [first, first + n), two at a time. */
void fleet_put(unsigned int first, unsigned int n);

/* JSON; takes the text. */
json_t *fleet_parse(char *text);
/* A report's functions and edges, by the identities of functions */
json_t *fleet_functions(const json_t *root);
json_t *fleet_edges(const json_t *root);
/* Takes both; what: "functions". */
void fleet_assert_same(json_t *a, json_t *b, const char *what);
/* Errors and lines, within the rounding of an error to whole nanoseconds */
void fleet_assert_near(const json_t *a, const json_t *b);

/* What the database has is the merge of all files, to the nanosecond. */
void fleet_assert_all_there(void);

#endif
