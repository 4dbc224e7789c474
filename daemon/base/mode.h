/* SPDX-License-Identifier: BSD-2-Clause */
/* How a target is looked at. Chosen when it is attached to; its figures say which it was. */
#ifndef PYPROF_BASE_MODE_H
#define PYPROF_BASE_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

enum mode {
	MODE_TRACE,  /* every call and every return: counts and times */
	MODE_COUNT,  /* every call: counts only */
	MODE_SAMPLE, /* the stack, so and so often a second: an estimate of CPU time */
};

#define MODE_RATE_DEFAULT 99u /* not 100: programs that do something every 10 ms are seen as well */
#define MODE_RATE_MAX	  9999u

extern const char *const mode_names[]; /* by enum mode; ends with NULL */

/* -1: no such mode. */
int mode_parse(const char *name);

/* --max-overhead, per cent of what the target uses itself. */
#define MODE_OVERHEAD_MAX 50

/* Whether a bound of so many per cent (0: none) goes with these: windows are of traces, and resources
 * are not estimated. 0, or exit code 2 with this hint. */
int mode_check_bound(uint64_t percent, enum mode mode, bool metrics, const char *hint,
		     struct diag *diag);

/* What was asked for. */
struct mode_choice {
	enum mode mode;
	uint32_t rate; /* Hz; MODE_SAMPLE only */
};

#endif
