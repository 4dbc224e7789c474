/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a target is observed: the options, and the table of them that pyprofd's and pyprofctl's command
 * lines, the control API and shell completion are made from. The man pages are checked against it.
 *
 * To add an option: a member and a row here, a paragraph in each man page, and the code that uses it.
 */
#ifndef PYPROF_BASE_TARGET_OPTS_H
#define PYPROF_BASE_TARGET_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/mode.h"
#include "base/opts.h"

/* A child that is followed gets a copy of what the process that forked it has. */
struct target_opts {
	struct mode_choice mode; /* rate may be TARGET_OPTS_RATE_AUTO */
	uint32_t max_overhead;	 /* percent of the target's CPU time, 1 to 50; 0: no limit */
	uint32_t stop_above;	 /* percent: see session/breaker.h; 0: never */
	bool builtins;		 /* rows for functions written in C, too */
	uint32_t counters;	 /* resource counters to keep: bits, by enum pyp_counter */
	/* Processes that it forks, or has forked, and theirs become targets of their own as long as
	 * they run the same program (see session/follow.c). */
	bool follow;
	bool verify;	     /* prove an unknown build on a scratch process first */
	uint64_t ring_bytes; /* a power of two */
};

/* Rows have a key, and go into a struct target_opts. Ends with name == NULL. */
extern const struct opt target_opt_table[];

/* What somebody asked for: options that were not given leave the daemon's as they are. */
struct target_opts_given {
	struct target_opts opts;
	uint64_t given; /* bit i: the table's row i was given */
};

/* The group of a command line. */
#define TARGET_OPTS_GROUP(g)                                                                       \
	{                                                                                          \
		target_opt_table, &(g)->opts, &(g)->given                                          \
	}

/* Was the option that sets this member given? */
bool target_opts_has(const struct target_opts_given *g, size_t offset);
#define TARGET_OPTS_HAS(g, member) target_opts_has((g), offsetof(struct target_opts, member))

/* No rate was given: what the mode takes. 0 is none, beside a trace. */
#define TARGET_OPTS_RATE_AUTO UINT32_MAX
/* Samples per second, Hz; 0: none are taken. */
uint32_t target_opts_rate(const struct target_opts *o);

/* What holds where nothing was given, to the daemon either. */
void target_opts_init(struct target_opts *o);

/* Set one from a request; its key must be the table's. Exit code 2. */
int target_opts_set(struct target_opts_given *g, const struct opt *row, const char *text,
		    struct diag *diag);

/* Do options that were given go with the others? Exit code 2. */
int target_opts_check_given(const struct target_opts_given *g, struct diag *diag);
/* Can a target be observed like that? Exit code 2. */
int target_opts_check(const struct target_opts *o, struct diag *diag);

#endif
