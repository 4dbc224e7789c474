/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource counters by name: see PYP_COUNTERS_X in pyprof/bpf_abi.h. */
#ifndef PYPROF_BASE_COUNTERS_H
#define PYPROF_BASE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "pyprof/bpf_abi.h"

/* "memory": the process's memory by function (the columns of that group), a bit beside those. */
#define COUNTERS_MEMORY (1u << 31)

/* Those that a list ("vcsw,rbytes", "switches,io", "all") names, as bits. Exit code 2. */
int counters_parse(const char *list, uint32_t *ret, struct diag *diag);

/* The columns that these bits measure. */
uint64_t counters_columns(uint32_t bits);

/* These bits as such a list, in buf; "" if there are none. */
const char *counters_list(uint32_t bits, char *buf, size_t size);

#endif
