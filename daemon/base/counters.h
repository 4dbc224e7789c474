/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource counters by name: see PYP_COUNTERS_X in pyprof/bpf_abi.h. */
#ifndef PYPROF_BASE_COUNTERS_H
#define PYPROF_BASE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "pyprof/bpf_abi.h"

/* "memory": the process's memory by function (columns of that group). Not an enum pyp_counter. */
#define COUNTERS_MEMORY (1u << 31)

/*
 * Parses a list of counters ("vcsw,rbytes", "switches,io", "all") into bits. Exit code 2 if it is
 * invalid.
 */
int counters_parse(const char *list, uint32_t *ret, struct diag *diag);

/* Returns the columns that these counters fill. */
uint64_t counters_columns(uint32_t bits);

/* Formats these bits as such a list in buf (size bytes); "" if there are none. Returns buf. */
const char *counters_list(uint32_t bits, char *buf, size_t size);

#endif
