/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name of the service that a process belongs to: its systemd unit, its container, else the script
 * or module on its command line. Arguments are never part of it, because they can contain secrets.
 * Pure; the command line is hostile.
 */
#ifndef PYPROF_CONTINUOUS_SERVICE_H
#define PYPROF_CONTINUOUS_SERVICE_H

#include "find/cgroup.h"

#define SERVICE_MAX 128

/*
 * command: arguments joined by blanks. Units of logins ("session-1.scope", "user@1000.service") are
 * not services.
 */
void service_name(const struct cgroup_place *place, const char *command, char out[SERVICE_MAX]);

#endif
