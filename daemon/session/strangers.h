/* SPDX-License-Identifier: BSD-2-Clause */
/* What others have put into a target's code, for people: other tracers, breakpoints left behind. */
#ifndef PYPROF_SESSION_STRANGERS_H
#define PYPROF_SESSION_STRANGERS_H

#include <stddef.h>

#include "probe/tracers.h"

#define STRANGERS_TEXT 256

/*
 * A sentence about other tracers, and one about breakpoints that they do not explain: `breaks` of
 * `sites` planned sites had one while nothing of ours was attached. "": nothing. Pure.
 */
void strangers_text(const struct tracers *tracers, unsigned int breaks, unsigned int sites,
		    char text[STRANGERS_TEXT]);

/* tracee_strangers.c: */
struct tracee;
/* When it is opened, and nothing of ours is in it: look, and log what there is. */
void strangers_find(struct tracee *t);
/* All that reports warn of: what may hide calls, and this. */
void strangers_warnings(const struct tracee *t, char *out, size_t size);
/* Before a report: are there other tracers now? Breakpoints were looked for at the beginning. */
void strangers_again(struct tracee *t);

#endif
