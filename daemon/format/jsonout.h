/* SPDX-License-Identifier: BSD-2-Clause */
/* Pieces of JSON, written as they are made: all ASCII, so also safe to look at. */
#ifndef PYPROF_FORMAT_JSONOUT_H
#define PYPROF_FORMAT_JSONOUT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* A string in quotes; NULL: null. 0 or -ENOMEM. */
int jsonout_string(FILE *out, const char *s);

/* A value. Takes it; it may be NULL for want of memory. 0 or -ENOMEM. */
int jsonout_value(FILE *out, json_t *value);

#endif
