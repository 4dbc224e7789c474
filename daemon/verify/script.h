/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scratch program (private to verify/): what it runs, and everything that must be seen of it.
 * The same Python for 3.6 to 3.15, built-in modules only.
 */
#ifndef PYPROF_VERIFY_SCRIPT_H
#define PYPROF_VERIFY_SCRIPT_H

#include <stdint.h>

/*
 * Says "ready" and waits for a byte; does what script_main and script_worker tell, in two threads;
 * says "done" and how many collections there were since, of generations 0, 1 and 2, waits; says "cost" and how long SCRIPT_COST_CALLS calls of an empty function took, in
 * ns: as the first word without, as the second with probes; ends when its input does.
 */
extern const char script_text[];
/* The definitions that it begins with; for tests. */
extern const char script_functions[];

#define SCRIPT_COST_CALLS 20000

/*
 * Events in order, each a sign and a function's name, between blanks:
 *
 *	>f  f starts or resumes		^f  an exception is thrown into f
 *	<f  f returns			!f  an exception leaves f
 *	~f  f yields or awaits		-f  f's code object has gone
 *	(f  the C function f is called	)f  it has returned, or raised
 *	+f  both, perhaps as one event (list.append)
 *
 * Of calls of C functions, those of functions that begin with SCRIPT_BUILTINS are compared.
 *
 * A name that ends with ":11" is for versions up to 3.11 only. What names of SCRIPT_FREE begin with
 * comes and goes as often as the version likes.
 */
struct script_part {
	const char *events;
	unsigned int times;
	unsigned int since; /* from this minor version on */
};

#define SCRIPT_FREE "tracer"
/* Of these, one that runs inside of collections only: a finalizer. */
#define SCRIPT_FINALIZER "tracer_del"
#define SCRIPT_BUILTINS	 "c_"

/* From the answer to "ready" on, as far as "done". A part without events is the end. */
extern const struct script_part script_main[], script_worker[];
/* The same of another program, in one thread, which says nothing of costs: calls of C functions. */
extern const char script_builtins_text[];
extern const struct script_part script_builtins[];
/* One call of body(), for tests. */
extern const char script_body[];

#endif
