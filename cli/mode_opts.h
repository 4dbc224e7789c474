/* SPDX-License-Identifier: BSD-2-Clause */
/* --mode, --rate, --max-overhead and --metrics: what the commands that attach have in common. */
#ifndef PYPROFCTL_MODE_OPTS_H
#define PYPROFCTL_MODE_OPTS_H

#include <jansson.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/mode.h"
#include "base/opts.h"

struct mode_opts {
	int mode;	       /* index into mode_opts_names; 0: the daemon's own */
	uint64_t rate;	       /* 0: none given */
	uint64_t max_overhead; /* percent; 0: none given */
	const char *metrics;   /* a list of resources; NULL: the daemon's own */
};

/* The empty name cannot be typed: it is what there is when nothing was given. */
extern const char *const mode_opts_names[];

/* Rows of an option table over a struct that has a struct mode_opts at `at`. */
/* clang-format off */
#define MODE_OPTS(at)                                                                              \
	{"mode", 0, OPT_CHOICE, (at) + offsetof(struct mode_opts, mode), "trace|count|sample",     \
	 "every call with its times; calls only; or an\nestimate",                                 \
	 .choices = mode_opts_names},                                                              \
	{"rate", 0, OPT_U64, (at) + offsetof(struct mode_opts, rate), "HZ",                        \
	 "samples a second (default: 99)", .min = 1, .max = MODE_RATE_MAX},                        \
	{"max-overhead", 0, OPT_U64, (at) + offsetof(struct mode_opts, max_overhead), "PCT",       \
	 "trace in windows where it takes more than that;\nestimates",                             \
	 .min = 1, .max = MODE_OVERHEAD_MAX},                                                      \
	{"metrics", 0, OPT_STRING, (at) + offsetof(struct mode_opts, metrics), "LIST",             \
	 "resources to count for each function: switches,\nfaults, io, all, or single ones"}
/* clang-format on */

/* Exit code 2 for a rate where nothing is sampled, a bound where nothing is traced, and resources that
 * nobody knows. */
int mode_opts_check(const struct mode_opts *o, struct diag *diag);
/* Add them to the request's body. */
void mode_opts_set(const struct mode_opts *o, json_t *body);

#endif
