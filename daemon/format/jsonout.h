/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes JSON piece by piece. The output is ASCII, so it cannot harm a terminal. */
#ifndef PYPROF_FORMAT_JSONOUT_H
#define PYPROF_FORMAT_JSONOUT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Writes a quoted string; null for NULL. Returns 0 or -ENOMEM. */
int jsonout_string(FILE *out, const char *s);

/*
 * Writes a value and releases the reference. value NULL (out of memory): returns -ENOMEM. Otherwise
 * 0.
 */
int jsonout_value(FILE *out, json_t *value);

#endif
