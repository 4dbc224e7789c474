/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Typed command line options. A table gives each option's name, value type and place in a struct;
 * parsing (with getopt_long), error messages and the help text are derived from it. Both programs
 * use it.
 *
 * Errors have exit code 2 and one line that names the option and the value.
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
	OPT_WORDS,    /* struct opt_words, repeatable; borrowed from argv, not empty */
};

#define OPT_PIDS_MAX 64

struct opt_pids {
	int pid[OPT_PIDS_MAX];
	size_t n;
};

#define OPT_WORDS_MAX OPT_PIDS_MAX

struct opt_words {
	char *v[OPT_WORDS_MAX];
	size_t n;
};

struct opt {
	const char *name; /* long name; NULL ends a table */
	char short_name;  /* 0: none */
	enum opt_type type;
	size_t offset;	 /* in the struct of its group */
	const char *arg; /* the value's name in the help text */
	const char *help;
	uint64_t min, max; /* of numbers and sizes; max 0: no limit */
	/* OPT_CHOICE: the values; OPT_STRING: some of them, for completion (may be NULL). Ends with
	 * NULL; "" is skipped. */
	const char *const *choices;
	const char *initial; /* default value as text; NULL: 0, false or none */
	const char *key;     /* key in the control API's requests; NULL: not available
				     * there */
	/* The request value that removes the daemon's own setting; NULL: cannot be removed. On a
	 * command line, leaving the option out does the same. */
	const char *none;
};

/* A table and the struct that it fills. given (may be NULL): bit i is set if row i's option was
 * given. */
struct opt_group {
	const struct opt *opts;
	void *dst;
	uint64_t *given;
};

enum opts_mode {
	OPTS_STOP,    /* stop at the first operand: the rest is another command's */
	OPTS_PERMUTE, /* options and operands in any order, until "--" */
};

#define OPTS_MAX 64

/*
 * Parse argv[1…]. The array of groups ends with opts == NULL. *ret: index of the first operand;
 * with OPTS_PERMUTE argv is reordered, operands last. ret_dashes (may be NULL): set to whether "--"
 * precedes the operands. Errors: exit code 2.
 */
int opts_parse(const struct opt_group *groups, int argc, char **argv, enum opts_mode mode, int *ret,
	       bool *ret_dashes, struct diag *diag);

/*
 * Set one option in the struct dst from text. name: the option's name in errors. Flags take "true",
 * "false", "1" or "0" as the bool's value; text NULL means that the flag was given on a command
 * line.
 */
int opt_set(const struct opt *opt, const char *name, const char *text, void *dst,
	    struct diag *diag);

/* The option's value in the struct src, as text that opt_set() parses. NULL for lists and
 * durations. */
#define OPT_TEXT_MAX 128
const char *opt_text(const struct opt *opt, const void *src, char buf[OPT_TEXT_MAX]);

/* Print a table's options in two columns, as in --help. Rows with a key get their range, and their
 * default value if `initial` is true. */
void opts_print(const struct opt *opts, bool initial, FILE *out);

/* The candidate closest to word if it can be a typing error, else NULL */
const char *opts_closest(const char *word, const char *const *candidates);

#endif
