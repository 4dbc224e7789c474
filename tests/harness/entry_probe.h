/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a function of a file runs, by thread: an observer that is independent of pyprofd. Probes at
 * its entry and at its returns (perf's uprobe events, with the kernel's return probes), in all
 * processes. Requires root. For functions that do not recurse.
 */
#ifndef PYPROF_TESTS_HARNESS_ENTRY_PROBE_H
#define PYPROF_TESTS_HARNESS_ENTRY_PROBE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct entry_probe;

/* offsets: of the function's copies in the file. Skips the test if the kernel has no such events. */
struct entry_probe *entry_probe_new(const char *file, const uint64_t *offsets, size_t n);

/*
 * Returns the ns that threads of this process have spent between entry and return, calls that have
 * returned and took at least `least` ns, and their number. Fails the test if events were lost.
 */
uint64_t entry_probe_time(struct entry_probe *p, pid_t pid, uint64_t least, size_t *calls);
void entry_probe_free(struct entry_probe *p);

#endif
