/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detects other programs' changes of a target's code (other tracers, leftover breakpoints) and
 * formats warnings about them.
 */
#ifndef PYPROF_SESSION_STRANGERS_H
#define PYPROF_SESSION_STRANGERS_H

#include <stddef.h>

#include "probe/tracers.h"

#define STRANGERS_TEXT 256

/*
 * Writes a sentence about other tracers or, if there are none, about `breaks` of `sites` planned
 * sites that had a breakpoint while no probe of this daemon was attached. text: "" if there is
 * nothing to report. Pure.
 */
void strangers_text(const struct tracers *tracers, unsigned int breaks, unsigned int sites,
		    char text[STRANGERS_TEXT]);

/* In tracee_strangers.c: */
struct tracee;
/*
 * Looks for other tracers and breakpoints and logs a warning. Call it when the target is opened,
 * before its probes are attached.
 */
void strangers_find(struct tracee *t);
/*
 * Writes all warnings for reports: about calls that may be missing, and about other tracers. size:
 * of out, bytes.
 */
void strangers_warnings(const struct tracee *t, char *out, size_t size);
/*
 * Before a report: updates the warning about other tracers. Breakpoints are only looked for at the
 * beginning.
 */
void strangers_again(struct tracee *t);

#endif
