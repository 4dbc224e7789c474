/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a probe's hit costs the thread that runs into it, in nanoseconds: before the event's time is
 * taken, and after. Measured by probe/calibrate.c, subtracted by snapshot/correct.c.
 */
#ifndef PYPROF_BASE_COST_H
#define PYPROF_BASE_COST_H

#include <stdbool.h>
#include <stdint.h>

enum cost_kind { COST_ENTER, COST_LEAVE, COST_YIELD, COST_KINDS };

struct cost {
	bool known;
	uint32_t before[COST_KINDS], after[COST_KINDS];
};

#endif
