/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource counters by name: see PYP_METRICS_X in pyprof/bpf_abi.h. */
#ifndef PYPROF_BASE_METRICS_H
#define PYPROF_BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "pyprof/bpf_abi.h"

/* Those that a list ("vcsw,rbytes", "switches,io", "all") names, as bits. Exit code 2. */
int metrics_parse(const char *list, uint32_t *ret, struct diag *diag);

/* These bits as such a list, in buf; "" if there are none. */
const char *metrics_list(uint32_t bits, char *buf, size_t size);

/* The name of one, and what it is. Never NULL. */
const char *metrics_name(enum pyp_metric m);
const char *metrics_text(enum pyp_metric m);

#endif
