/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Typed command line options: a table says what an option is called, what its value looks like and
 * where in a struct it goes; parsing (over getopt_long), the error line and the help text all come
 * from it. Used by both programs.
 *
 * Errors are exit code 2, one line, and say which option and which value.
 */
#ifndef PYPROF_BASE_OPTS_H
#define PYPROF_BASE_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"

enum opt_type {
	OPT_FLAG,     /* bool, set to true */
	OPT_STRING,   /* const char *, borrowed from argv; not empty */
	OPT_U64,      /* uint64_t within min…max */
	OPT_PID,      /* pid_t */
	OPT_DURATION, /* uint64_t nanoseconds, see parse_duration */
	OPT_SIZE,     /* uint64_t bytes within min…max, see parse_size */
	OPT_CHOICE,   /* int: index into choices */
	OPT_PIDS,     /* struct opt_pids, repeatable */
};

#define OPT_PIDS_MAX 64

struct opt_pids {
	int pid[OPT_PIDS_MAX];
	size_t n;
};

struct opt {
	const char *name; /* long name; NULL ends a table */
	char short_name;  /* or 0 */
	enum opt_type type;
	size_t offset;	 /* in the struct of its group */
	const char *arg; /* what help calls the value */
	const char *help;
	uint64_t min, max;	    /* OPT_U64, OPT_SIZE; max 0: no limit */
	const char *const *choices; /* OPT_CHOICE: ends with NULL; "" is no choice */
};

/* A table and the struct that it fills. */
struct opt_group {
	const struct opt *opts;
	void *dst;
};

enum opts_mode {
	OPTS_STOP,    /* stop at the first operand: what follows belongs to somebody else */
	OPTS_PERMUTE, /* operands and options in any order, until "--" */
};

#define OPTS_MAX 64

/*
 * Parse argv[1…]. groups end with opts == NULL. *ret is the index of the first operand; with
 * OPTS_PERMUTE argv is reordered, operands last. ret_dashes (may be NULL): operands followed "--".
 */
int opts_parse(const struct opt_group *groups, int argc, char **argv, enum opts_mode mode, int *ret,
	       bool *ret_dashes, struct diag *diag);

/* The options of one table, two columns, as --help prints them. */
void opts_print(const struct opt *opts, FILE *out);

/* The candidate closest to word, if it is close enough to be a slip of the fingers, else NULL. */
const char *opts_closest(const char *word, const char *const *candidates);

#endif
