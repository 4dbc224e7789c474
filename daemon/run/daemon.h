/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of pyprofd: owns the event loop and everything on it (sessions, control socket, server,
 * launched command), from the first attach to the last write.
 */
#ifndef PYPROF_RUN_DAEMON_H
#define PYPROF_RUN_DAEMON_H

#include "run/options.h"

/* Runs until the end; says errors on stderr. Returns the exit status. */
int daemon_run(const struct options *opts);

#endif
