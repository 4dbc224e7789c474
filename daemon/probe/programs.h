/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One instance of the BPF programs (private to probe/): chosen by the target's mode, configured and
 * loaded.
 */
#ifndef PYPROF_PROBE_PROGRAMS_H
#define PYPROF_PROBE_PROGRAMS_H

#include <stdbool.h>

#include "base/diag.h"
#include "probe/mechanism.h"
#include "probe/opts.h"

struct pyprof_bpf; /* the skeleton, pyprof.skel.h */

/* Programs and maps in the kernel, nothing attached; to be freed by pyprof_bpf__destroy. Errors name
 * the missing capability (exit 4) or kernel feature (exit 5). */
int programs_open(const struct probe_opts *o, enum probe_mechanism mechanism,
		  struct pyprof_bpf **ret, struct diag *diag);
/* The program of the sites: a descriptor of the skeleton's. Not in MODE_SAMPLE. */
int programs_site_fd(const struct pyprof_bpf *skel, enum mode mode);
/* Which sites it takes, a bit for each kind. Counting asks where frames start and code ends. */
unsigned int programs_kinds(const struct pyprof_bpf *skel, enum mode mode);
/* Is there a map of C functions? */
bool programs_have_methods(const struct pyprof_bpf *skel);

#endif
