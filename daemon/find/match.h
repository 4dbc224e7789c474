/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding processes in a list by what people call them. Each function sets hit[i] for the processes
 * that match, leaves the others as they are, and does nothing for an empty name. hit has l->n
 * elements. Pure, except for match_port().
 */
#ifndef PYPROF_FIND_MATCH_H
#define PYPROF_FIND_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "find/processes.h"

/* By a word of the command line ("app.py", also without ".py"; a path's last component; a module;
 * "app" of "web:app"), or by the unit. */
void match_name(const struct processes *l, const char *name, bool *hit);

/* By the systemd unit, with or without ".service". */
void match_unit(const struct processes *l, const char *unit, bool *hit);

/* By the container's name, or the beginning of its id, at least MATCH_ID_MIN characters. */
#define MATCH_ID_MIN 4
void match_container(const struct processes *l, const char *container, bool *hit);

/* By a TCP port that the process listens on. Returns the number of processes that could not be
 * looked at. */
size_t match_port(const struct processes *l, unsigned int port, bool *hit);

/* Clear hit[i] of each process that descends from another one that is hit, such as the workers that
 * a server has forked. Returns the number of those left. */
size_t match_drop_children(const struct processes *l, bool *hit);

#endif
