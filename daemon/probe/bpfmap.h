/* SPDX-License-Identifier: BSD-2-Clause */
/* Emptying a BPF map (private to probe/). */
#ifndef PYPROF_PROBE_BPFMAP_H
#define PYPROF_PROBE_BPFMAP_H

/* The longest key and value of the maps that are cleared, in bytes. */
#define BPFMAP_WORD 8u

/*
 * Remove all elements of a hash map whose keys and values have BPFMAP_WORD bytes at most. It
 * takes one system call per some thousand elements; where the kernel lacks batches of them (5.6)
 * or memory is short, two per element.
 */
void bpfmap_clear(int fd);

#endif
