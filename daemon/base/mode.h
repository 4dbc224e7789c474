/* SPDX-License-Identifier: BSD-2-Clause */
/* How a target is looked at. Chosen when it is attached to; its figures say which it was. */
#ifndef PYPROF_BASE_MODE_H
#define PYPROF_BASE_MODE_H

#include <stdint.h>

enum mode {
	MODE_TRACE,  /* every call and every return: counts and times */
	MODE_COUNT,  /* every call: counts; with a rate, an estimate of CPU time as well */
	MODE_SAMPLE, /* the stack, so and so often a second: an estimate of CPU time */
};

extern const char *const mode_names[]; /* by enum mode; ends with NULL */

/* -1: no such mode. */
int mode_parse(const char *name);

/* What was asked for. */
struct mode_choice {
	enum mode mode;
	uint32_t rate; /* Hz; 0: see target_opts_rate */
};

#endif
