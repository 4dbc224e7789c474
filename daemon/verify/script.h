/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The test program of the scratch process (private to verify/), and its expected events. The same
 * Python code for 3.6 to 3.15, using only built-in modules.
 */
#ifndef PYPROF_VERIFY_SCRIPT_H
#define PYPROF_VERIFY_SCRIPT_H

#include <stdint.h>

/*
 * Prints "ready" and waits for a byte; runs script_main and script_worker in two threads; prints
 * "done" and the number of collections since, of generations 0, 1 and 2, waits; prints "cost" and
 * the ns of SCRIPT_COST_CALLS calls of an empty function, without and with probes; exits at end of
 * input.
 */
extern const char script_text[];
/* Its function definitions, for tests */
extern const char script_functions[];

#define SCRIPT_COST_CALLS 20000

/*
 * Events in order, separated by blanks; each is a sign and a function's name:
 *
 *   >f  f starts or resumes          ^f  an exception is thrown into f
 *   <f  f returns                    !f  an exception leaves f
 *   ~f  f yields or awaits           -f  f's code object is freed
 *   (f  the C function f is called   )f  it returns or raises
 *   +f  both, possibly one event (list.append)
 *
 * Calls of C functions are compared only if their callers' names begin with SCRIPT_BUILTINS.
 *
 * Names that end with ":11" apply to versions up to 3.11. Events of functions whose names begin
 * with SCRIPT_FREE may occur any number of times.
 */
struct script_part {
	const char *events;
	unsigned int times;
	unsigned int since; /* first minor version */
};

#define SCRIPT_FREE "tracer"
/* Of these, the function that runs inside of collections only: a finalizer. */
#define SCRIPT_FINALIZER "tracer_del"
#define SCRIPT_BUILTINS	 "c_"

/* Events between the answer to "ready" and "done". A part without events is the end. */
extern const struct script_part script_main[], script_worker[];
/* A similar program for calls of C functions, with one thread and without costs */
extern const char script_builtins_text[];
extern const struct script_part script_builtins[];
/* One call of body(), for tests */
extern const char script_body[];

#endif
