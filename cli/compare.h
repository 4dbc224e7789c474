/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing two snapshots that the client has: saved files, or spans of history. */
#ifndef PYPROFCTL_COMPARE_H
#define PYPROFCTL_COMPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "format/diff.h"

struct compare_opts {
	const char *output;
	int format; /* index into compare_formats; 0: not given */
	int clock;  /* index into saved_clocks; 0: the snapshots' clock */
	uint64_t limit;
	bool force;
};

extern const char *const compare_formats[];

/* By the format, or by the extension of the output file. Exit code 2. */
int compare_format(const struct compare_opts *o, bool *ret_json, struct diag *diag);

/* Write the comparison to the output file, or to the stream. */
int compare_run(const struct diff_side side[DIFF_SIDES], const struct compare_opts *o, FILE *stream,
		struct diag *diag);

#endif
