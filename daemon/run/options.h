/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprofd's command line, parsed and checked */
#ifndef PYPROF_RUN_OPTIONS_H
#define PYPROF_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/opts.h"
#include "base/target_opts.h"
#include "format/format.h"
#include "push/options.h"

struct options {
	struct opt_pids pids;
	const char *socket; /* from option, environment or default */
	const char *group;  /* its members may read; NULL: none */
	const char *http, *http_token_file, *http_cert, *http_key; /* NULL: none */
	uint64_t metrics_functions;				   /* per target in /metrics */
	bool no_start;
	bool yes;		   /* consent to a high overhead */
	struct target_opts target; /* defaults of targets attached without options of their own */
	uint64_t max_children;	   /* at a time */
	int clock;		   /* enum snapshot_clock */
	uint64_t duration_ns;	   /* 0: unlimited */
	struct opt_words push;	   /* addresses of receivers */
	uint64_t push_every_ns;	   /* 0: the default */
	uint64_t push_queue;	   /* bytes, for each receiver; 0: the default */
	struct push_options push_opts;
	const char *output; /* NULL: none */
	const char *format_name;
	const struct format *format; /* by name, else by output's extension, else text */
	const char *sort;	     /* pstats keys; NULL: default */
	uint64_t limit;		     /* rows; 0: all */
	bool raw_times;		     /* do not subtract the probes' own time */
	bool command_status;	     /* exit with the command's status */
	bool continuous, all_python;
	const char *match, *unit, *keep;
	uint64_t interval_ns, keep_memory, keep_size, merge_after_ns, merge_to_ns;
	struct opt_words labels;
	bool verbose, help, version;
	char **cmd; /* NULL: none; ends with NULL; borrowed from argv */
};

/* Exit code 2. With help or version set, the other options are not checked. */
int options_parse(int argc, char **argv, struct options *ret, struct diag *diag);
void options_help(FILE *out);

#endif
