/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table `hours`: sums of complete hours of `profiles`, by service, version, mode and options.
 *
 * An hour is a partition of `profiles`. Its state is the number of the last block that was inserted,
 * which ClickHouse increases with each insert and keeps when it merges parts, and its number of
 * rows. A filled hour has the state that was added up: if the present one differs, profiles have
 * arrived (or equal rows were merged), and the hour is filled again; until then its sums are not
 * used. An hour whose profiles were removed keeps its sums.
 *
 * Hours are filled in a table of their own, and replaced as a whole. Pure.
 */
#ifndef PYPROF_CLICKHOUSE_ROLLUP_H
#define PYPROF_CLICKHOUSE_ROLLUP_H

#include "clickhouse/question.h"

struct hours_state {
	uint64_t blocks, rows;
};

/* An hour that has profiles, or is filled, or both */
struct hours_entry {
	uint32_t hour;		      /* since 1970 */
	uint64_t filled;	      /* a number that differs each time; 0: not filled, or twice */
	struct hours_state of, there; /* what was added up; of `profiles`: rows is 0: none */
};

struct hours_list {
	struct hours_entry *list; /* owned; in order */
	size_t n;
	bool local; /* `profiles` stores rows itself; else its state is not known */
};

void hours_list_deinit(struct hours_list *l);

/* Writes the question for all hours in [first, end). */
void rollup_write_list(const char *database, uint32_t first, uint32_t end, FILE *out);
/* Reads the answer, which is untrusted. Returns 0, -EBADMSG or -ENOMEM, with *diag set. */
int rollup_read_list(const void *data, size_t n, struct hours_list *ret, struct diag *diag);

/* Returns whether the hour is filled, with the profiles that are there. */
bool rollup_is_current(const struct hours_entry *e);
/* Returns whether the hour must be filled, or filled again. now_s: UNIX time; wait_s: how long after
 * its end an hour is complete. */
bool rollup_is_due(const struct hours_entry *e, uint64_t now_s, uint64_t wait_s);

/*
 * The filled hours within the question's span that may be used for it, as ranges. *ret: owned by the
 * caller, NULL if there are none; *ret_used: a number that differs if one of them was filled again.
 */
int rollup_ranges(const struct hours_list *l, const struct question *q, struct question_hours **ret,
		  unsigned int *ret_n, uint64_t *ret_used);

/* The name of a table in which an hour is filled; with the time, so that old ones can be found. */
#define ROLLUP_NAME_MAX 64
void rollup_name(uint64_t now_s, uint32_t random, char buf[ROLLUP_NAME_MAX]);
/* Returns whether it is such a name and older than a day: its rollup did not finish. */
bool rollup_name_is_old(const char *name, size_t n, uint64_t now_s);
/* Writes the question for the names of all such tables, one per line. */
void rollup_write_names(const char *database, FILE *out);

/* One hour to be filled */
struct rollup {
	const char *database, *table; /* valid names, borrowed */
	uint32_t hour;
	uint64_t filled; /* random, not 0 */
	struct hours_state of;
};

/*
 * Writes the i-th of the statements that fill the table, in order. Returns false if there is none of
 * this number. Then, if the state is still the same, rollup_write_replace().
 */
bool rollup_write_fill(unsigned int i, const struct rollup *r, FILE *out);
void rollup_write_replace(const struct rollup *r, FILE *out);
void rollup_write_drop(const char *database, const char *table, size_t n, FILE *out);

#endif
