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
	OPT_OFF,      /* bool, set to false: --no-thing */
	OPT_STRING,   /* const char *, borrowed from argv; not empty */
	OPT_U64,      /* uint64_t within min…max */
	OPT_U32,      /* uint32_t within min…max */
	OPT_PID,      /* pid_t */
	OPT_DURATION, /* uint64_t nanoseconds, see parse_duration */
	OPT_SIZE,     /* uint64_t bytes within min…max, see parse_size */
	OPT_POW2,     /* the same, rounded up to a power of two */
	OPT_CHOICE,   /* int or an enum: index into choices */
	OPT_COUNTERS, /* uint32_t: bits, see counters_parse */
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
	uint64_t min, max;	    /* of numbers and sizes; max 0: no limit */
	const char *const *choices; /* OPT_CHOICE: ends with NULL; "" is no choice */
	const char *initial;	    /* the value if none is given; NULL: 0, false or none */
	const char *key;	    /* in a request of the control API; NULL: it has none */
	/* The value of a request that lifts what the daemon was started with; NULL: there is none.
	 * A command line leaves the option out instead. */
	const char *none;
};

/* A table and the struct that it fills. given (may be NULL): bit i is set for the table's row i. */
struct opt_group {
	const struct opt *opts;
	void *dst;
	uint64_t *given;
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

/*
 * Set one option in the struct dst from a text; errors call it name. A flag's text is true, false, 1
 * or 0, which is the value of the bool; text NULL: the flag stands on a command line.
 */
int opt_set(const struct opt *opt, const char *name, const char *text, void *dst,
	    struct diag *diag);

/* The value in the struct src as opt_set reads it, of every type but the lists and durations. */
#define OPT_TEXT_MAX 128
const char *opt_text(const struct opt *opt, const void *src, char buf[OPT_TEXT_MAX]);

/* The options of one table, two columns, as --help prints them; a row with a key with its range, and
 * with its initial value if that is asked for. */
void opts_print(const struct opt *opts, bool initial, FILE *out);

/* The candidate closest to word, if it is close enough to be a slip of the fingers, else NULL. */
const char *opts_closest(const char *word, const char *const *candidates);

#endif
