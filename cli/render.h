/* SPDX-License-Identifier: BSD-2-Clause */
/* The API's JSON as text. Pure: JSON in, stream out. */
#ifndef PYPROFCTL_RENDER_H
#define PYPROFCTL_RENDER_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Print a table of the targets in {"targets": […]}, and notes below it. width: columns of the
 * terminal, to which lines are cut; 0: not a terminal, nothing is cut. */
void render_status(const json_t *status, int width, FILE *out);

/* Print the state of continuous mode, the member "continuous" of a status; nothing in other modes. */
void render_continuous(const json_t *continuous, FILE *out);

/* Print at most width characters of s (0: all), with those that can harm a terminal replaced.
 * Returns the number printed. */
int render_clipped(const char *s, int width, FILE *out);

/* The command line without its program's directory, so that the distinguishing part comes first */
const char *render_command(const char *cmdline);

/* "1234567", shortened if wider than `width`: "12.3G". Returns out. */
const char *render_count(uint64_t v, int width, char *out, size_t size);

/* "12.3s", "4m05s", "3h07m", "2d05h". Returns out. */
const char *render_duration(uint64_t ns, char *out, size_t size);

#endif
