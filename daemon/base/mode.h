/* SPDX-License-Identifier: BSD-2-Clause */
/* How a target is observed, chosen at attach. Profiles carry the mode. */
#ifndef PYPROF_BASE_MODE_H
#define PYPROF_BASE_MODE_H

#include <stdint.h>

enum mode {
	MODE_TRACE,  /* every call and return: counts and times */
	MODE_COUNT,  /* every call: counts; with a rate, CPU time estimated from samples */
	MODE_SAMPLE, /* stack samples at a fixed rate: estimated CPU time */
};

extern const char *const mode_names[]; /* by enum mode; ends with NULL */

/* Returns an enum mode, or -1 if unknown. */
int mode_parse(const char *name);

/* The requested mode */
struct mode_choice {
	enum mode mode;
	uint32_t rate; /* Hz; 0: see target_opts_rate */
};

#endif
