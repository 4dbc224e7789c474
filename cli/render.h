/* SPDX-License-Identifier: BSD-2-Clause */
/* The API's JSON as text, below 80 columns. Pure: JSON in, stream out. */
#ifndef PYPROFCTL_RENDER_H
#define PYPROFCTL_RENDER_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Print a table of the targets in {"targets": […]}, and notes below it. */
void render_status(const json_t *status, FILE *out);

/* "1234567", shortened if wider than `width`: "12.3G". Returns out. */
const char *render_count(uint64_t v, int width, char *out, size_t size);

/* "12.3s", "4m05s", "3h07m", "2d05h". Returns out. */
const char *render_duration(uint64_t ns, char *out, size_t size);

#endif
