/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of processes as text and as JSON. Pure: list in, stream or JSON out. */
#ifndef PYPROFCTL_PS_TABLE_H
#define PYPROFCTL_PS_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "find/processes.h"

#define PS_USER_MAX 33

/* How the table is written */
struct ps_style {
	int width; /* columns of the terminal, to which lines are cut; 0: nothing is cut */
	bool root; /* more privileges would not show more */
	/* Set out to the name of a user; required. Returns out. */
	const char *(*user)(uid_t uid, char out[PS_USER_MAX]);
};

/* A line per process, then notes: why processes cannot be traced, and what could not be read. */
void ps_table_print(const struct processes *l, const struct ps_style *style, FILE *out);

/* {"processes": […], "unreadable": n, "late": n}; new reference, NULL: out of memory. */
json_t *ps_table_json(const struct processes *l, const struct ps_style *style);

#endif
