/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of pyprofd. Owns the event loop and its users (sessions, control socket, server, launched
 * command), from the first attach to the last write.
 */
#ifndef PYPROF_RUN_DAEMON_H
#define PYPROF_RUN_DAEMON_H

#include "run/options.h"

/* Run until the end, and log errors. Returns the exit status. */
int daemon_run(const struct options *opts);

#endif
