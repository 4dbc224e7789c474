/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of how a target is observed. pyprofd's and pyprofctl's command lines, the control API
 * and shell completion are derived from the table. Tests compare the man pages with it.
 *
 * To add an option: a member here, a row in the table, a paragraph in each man page, and its code.
 */
#ifndef PYPROF_BASE_TARGET_OPTS_H
#define PYPROF_BASE_TARGET_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/mode.h"
#include "base/opts.h"

/* Followed children get a copy of their parent's. */
struct target_opts {
	struct mode_choice mode; /* rate may be TARGET_OPTS_RATE_AUTO */
	uint32_t max_overhead; /* percent of the target's CPU time, 1 to 50: target_opts_limit() */
	bool exact;	       /* no limit */
	bool asked;	       /* the mode or the limit is not just the default; has no row */
	uint32_t stop_above;   /* percent, see session/breaker.h; 0: never */
	bool builtins;	       /* include functions written in C */
	uint32_t counters;     /* resource counters: bits by enum pyp_counter */
	/* Forked children, existing and future ones, become targets while they run the same program
	 * (session/follow.c). */
	bool follow;
	bool verify;	     /* run the self-test for interpreters that have not passed it yet */
	uint64_t ring_bytes; /* ring buffer, bytes; a power of two */
	/*
	 * For hundreds of sampled targets at a time: small maps, no reasons for waiting, no source lines,
	 * no helper process while it is sampled, read twice a second. Has no row: continuous mode sets it.
	 */
	bool light;
};

/* All rows have a key and an offset in struct target_opts. Ends with name == NULL. */
extern const struct opt target_opt_table[];

/* The options of a request. Options that were not given keep the daemon's setting. */
struct target_opts_given {
	struct target_opts opts;
	uint64_t given; /* bit i: the table's row i was given */
};

/* The option group for a command line */
#define TARGET_OPTS_GROUP(g)                                                                       \
	{                                                                                          \
		target_opt_table, &(g)->opts, &(g)->given                                          \
	}

/* Returns whether the option of the member at this offset was given. */
bool target_opts_has(const struct target_opts_given *g, size_t offset);
#define TARGET_OPTS_HAS(g, member) target_opts_has((g), offsetof(struct target_opts, member))

/* Returns whether a mode or a limit was given. */
bool target_opts_asked(const struct target_opts_given *g);

/*
 * Continuous mode's own targets are light, but not those of a request that says how a process is observed:
 * what it does not give is then as without continuous mode.
 */
void target_opts_not_light(struct target_opts_given *g);

/* No rate was given, so the mode's default applies. (0 disables the samples of a trace.) */
#define TARGET_OPTS_RATE_AUTO UINT32_MAX
/* The sampling rate in Hz; 0: no samples */
uint32_t target_opts_rate(const struct target_opts *o);

/*
 * The limit of the probes' overhead, percent of the target's own CPU time; 0: none, every call is
 * traced, or it is not the mode's. (A max_overhead of 0 lifts the limit, as exact does.)
 */
uint32_t target_opts_limit(const struct target_opts *o);

/* Set the built-in defaults. */
void target_opts_init(struct target_opts *o);

/* Set one option from a request's text. Exit code 2 if it is invalid. */
int target_opts_set(struct target_opts_given *g, const struct opt *row, const char *text,
		    struct diag *diag);

/* Check given options against each other. Exit code 2. */
int target_opts_check_given(const struct target_opts_given *g, struct diag *diag);
/* Check that a target can be observed with these options. Exit code 2. */
int target_opts_check(const struct target_opts *o, struct diag *diag);

#endif
