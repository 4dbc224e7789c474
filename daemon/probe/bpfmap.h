/* SPDX-License-Identifier: BSD-2-Clause */
/* Clears a BPF map (private to probe/). */
#ifndef PYPROF_PROBE_BPFMAP_H
#define PYPROF_PROBE_BPFMAP_H

/* The maximum size of keys for kernels without batch operations, in bytes. */
#define BPFMAP_KEY 8u

/*
 * Removes all elements of a hash map whose values are not per CPU. Takes one system call per several
 * thousand elements, or two per element if the kernel lacks batch operations (before 5.6) or
 * memory is short.
 */
void bpfmap_clear(int fd);

#endif
