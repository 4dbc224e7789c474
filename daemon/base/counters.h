/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource counters by name: see PYP_COUNTERS_X in pyprof/bpf_abi.h. */
#ifndef PYPROF_BASE_COUNTERS_H
#define PYPROF_BASE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "pyprof/bpf_abi.h"

/* Those that a list ("vcsw,rbytes", "switches,io", "all") names, as bits. Exit code 2. */
int counters_parse(const char *list, uint32_t *ret, struct diag *diag);

/* These bits as such a list, in buf; "" if there are none. */
const char *counters_list(uint32_t bits, char *buf, size_t size);

#endif
