/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes censuses of objects as text and as JSON, reads saved ones, and compares two. Pure, except
 * for reading the file.
 */
#ifndef PYPROF_DUMP_OBJECTS_REPORT_H
#define PYPROF_DUMP_OBJECTS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "python/census.h"

/* A census, with its process and time. */
struct objects_report {
	int pid;
	uint64_t time_ns; /* CLOCK_REALTIME */
	char version[32];
	char command[256];
	struct census census; /* owned */
};

void objects_report_deinit(struct objects_report *r);

/*
 * Reads a file written by objects_report_write_json. Exit code 2 for any other file. The caller
 * frees *ret with objects_report_deinit().
 */
int objects_report_load(const char *path, struct objects_report *ret, struct diag *diag);

enum objects_report_sort { OBJECTS_BY_COUNT, OBJECTS_BY_SIZE };

struct objects_report_opts {
	enum objects_report_sort sort;
	uint64_t limit; /* maximum number of rows; 0: all */
};

/*
 * Write a report. before (may be NULL): an earlier census; then only types that have changed since
 * are shown. Rows are sorted by count or size, with `before` by the change of these. Return 0,
 * -ENOMEM or -EIO.
 */
int objects_report_write_text(const struct objects_report *r, const struct objects_report *before,
			      const struct objects_report_opts *opts, FILE *out);
int objects_report_write_json(const struct objects_report *r, const struct objects_report *before,
			      const struct objects_report_opts *opts, FILE *out);

#endif
