/* SPDX-License-Identifier: BSD-2-Clause */
/* Censuses of objects as text and as JSON, saved ones read back, and the difference of two. Pure but
 * for the file that is read. */
#ifndef PYPROF_DUMP_OBJECTS_REPORT_H
#define PYPROF_DUMP_OBJECTS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "python/census.h"

/* A census, and of what and when it was. */
struct objects_report {
	int pid;
	uint64_t time_ns; /* CLOCK_REALTIME */
	char version[32];
	char command[256];
	struct census census; /* owned */
};

void objects_report_deinit(struct objects_report *r);

/* Read what objects_report_write_json wrote. Exit code 2 for any other file. */
int objects_report_load(const char *path, struct objects_report *ret, struct diag *diag);

enum objects_report_sort { OBJECTS_BY_COUNT, OBJECTS_BY_SIZE };

struct objects_report_opts {
	enum objects_report_sort sort;
	uint64_t limit; /* rows; 0: all */
};

/* before (may be NULL): show what has changed since. Rows are sorted by count or size, or by how
 * much that has grown. 0, -ENOMEM or -EIO. */
int objects_report_write_text(const struct objects_report *r, const struct objects_report *before,
			      const struct objects_report_opts *opts, FILE *out);
int objects_report_write_json(const struct objects_report *r, const struct objects_report *before,
			      const struct objects_report_opts *opts, FILE *out);

#endif
