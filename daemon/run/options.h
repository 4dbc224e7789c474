/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprofd's command line, checked: what main() hands to the daemon. */
#ifndef PYPROF_RUN_OPTIONS_H
#define PYPROF_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/opts.h"
#include "base/target_opts.h"
#include "format/format.h"

struct options {
	struct opt_pids pids;
	const char *socket; /* chosen: option, environment or default */
	bool no_start;
	struct target_opts target; /* of targets that are attached without options of their own */
	uint64_t max_children;	   /* at one time */
	int clock;		   /* enum snapshot_clock */
	uint64_t duration_ns;	   /* 0: no end */
	const char *output;	   /* NULL: none */
	const char *format_name;
	const struct format *format; /* by name, else by output's extension, else text */
	const char *sort;	     /* pstats' keys; NULL: the default */
	uint64_t limit;		     /* rows; 0: all */
	bool raw_times;		     /* what the probes cost is not subtracted */
	bool verbose, help, version;
	char **cmd; /* NULL: none; ends with NULL; borrowed from argv */
};

/* Exit code 2. With help or version set the rest was not checked. */
int options_parse(int argc, char **argv, struct options *ret, struct diag *diag);
void options_help(FILE *out);

#endif
