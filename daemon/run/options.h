/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprofd's command line, checked: what main() hands to the daemon. */
#ifndef PYPROF_RUN_OPTIONS_H
#define PYPROF_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/mode.h"
#include "base/opts.h"
#include "format/format.h"

struct options {
	struct opt_pids pids;
	const char *socket; /* chosen: option, environment or default */
	bool no_start, no_verify;
	bool follow;	       /* children of the targets are targets, too */
	uint64_t max_children; /* at one time */
	int mode;	       /* enum mode */
	uint64_t rate;	       /* Hz */
	int clock;	       /* enum snapshot_clock */
	uint64_t duration_ns;  /* 0: no end */
	const char *output;    /* NULL: none */
	const char *format_name;
	const struct format *format; /* by name, else by output's extension, else text */
	const char *sort;	     /* pstats' keys; NULL: the default */
	uint64_t limit;		     /* rows; 0: all */
	uint64_t ring_bytes;
	const char *metrics_list;
	uint32_t metrics;      /* bits, by enum pyp_metric */
	bool raw_times;	       /* what the probes cost is not subtracted */
	uint64_t max_overhead; /* percent; 0: no limit */
	bool verbose, help, version;
	char **cmd; /* NULL: none; ends with NULL; borrowed from argv */
};

/* Exit code 2. With help or version set the rest was not checked. */
int options_parse(int argc, char **argv, struct options *ret, struct diag *diag);
void options_help(FILE *out);

#endif
