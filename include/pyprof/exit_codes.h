/* SPDX-License-Identifier: BSD-2-Clause */
/* Exit codes of pyprofd and pyprofctl. Part of the command line contract. */
#ifndef PYPROF_EXIT_CODES_H
#define PYPROF_EXIT_CODES_H

enum pyp_exit {
	PYP_EXIT_OK = 0,
	PYP_EXIT_FAILURE = 1,
	PYP_EXIT_USAGE = 2,
	PYP_EXIT_NO_PROCESS = 3,  /* no such process, or it has ended */
	PYP_EXIT_PERMISSION = 4,  /* a permission or capability is missing */
	PYP_EXIT_UNTRACEABLE = 5, /* not a traceable Python */
	PYP_EXIT_NO_DAEMON = 6,	  /* no daemon at that socket */
	PYP_EXIT_BUSY = 7,	  /* already being traced, or a daemon already holds the socket */
};

#endif
