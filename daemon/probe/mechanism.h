/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's mechanisms for attaching probes. */
#ifndef PYPROF_PROBE_MECHANISM_H
#define PYPROF_PROBE_MECHANISM_H

/* In order of preference. */
enum probe_mechanism {
	PROBE_MULTI,	 /* one multi-uprobe link for this process */
	PROBE_TRACEFS,	 /* one uprobe event with many probes for this process */
	PROBE_MULTI_ALL, /* one multi-uprobe link, for every process with the file mapped */
};
const char *probe_mechanism_name(enum probe_mechanism m); /* "multi", "tracefs", "multi-all" */
const char *probe_mechanism_text(enum probe_mechanism m); /* for reports */

#endif
