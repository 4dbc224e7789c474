// SPDX-License-Identifier: BSD-2-Clause
/* pyprofd: parses the command line and runs the daemon. */
#include <stdio.h>

#include "base/log.h"
#include "run/daemon.h"
#include "run/options.h"
#include "pyprof/version.h"

int main(int argc, char **argv)
{
	struct options opts;
	struct diag diag = {0};
	int r;

	log_init("pyprofd");
	r = options_parse(argc, argv, &opts, &diag);
	if (r < 0)
		return log_diag(&diag, r);
	if (opts.help) {
		options_help(stdout);
		return PYP_EXIT_OK;
	}
	if (opts.version) {
		puts("pyprofd " PYPROF_VERSION);
		return PYP_EXIT_OK;
	}
	if (opts.verbose)
		log_set_level(LOG_LEVEL_DEBUG);
	return daemon_run(&opts);
}
