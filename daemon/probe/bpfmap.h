/* SPDX-License-Identifier: BSD-2-Clause */
/* Clears a BPF map (private to probe/). */
#ifndef PYPROF_PROBE_BPFMAP_H
#define PYPROF_PROBE_BPFMAP_H

/* The maximum size of keys and values of these maps, in bytes. */
#define BPFMAP_WORD 8u

/*
 * Removes all elements of a hash map with keys and values of at most BPFMAP_WORD bytes. Takes one
 * system call per several thousand elements, or two per element if the kernel lacks batch
 * operations (before 5.6) or memory is short.
 */
void bpfmap_clear(int fd);

#endif
