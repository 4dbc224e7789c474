/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scratch program (private to verify/): what it runs and what must be seen of it. The same
 * Python for 3.6 to 3.15, built-in modules only.
 */
#ifndef PYPROF_VERIFY_SCRIPT_H
#define PYPROF_VERIFY_SCRIPT_H

#include <stdint.h>

/* Says "ready" and waits for a byte; runs `body` SCRIPT_ROUNDS times, says "done", waits; says
 * "cost" and how long SCRIPT_COST_CALLS calls of an empty function took, in ns: as the first word
 * without, as the second with probes; ends when its input does. */
extern const char script_text[];

#define SCRIPT_ROUNDS	  100
#define SCRIPT_COST_CALLS 20000

/* Per round: calls, and those that were no recursion. Ends with a NULL name. */
struct script_call {
	const char *name;
	uint32_t calls, primitive;
};
extern const struct script_call script_calls[];

#endif
