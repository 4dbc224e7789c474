/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A target's ring buffer: memory that the BPF programs write with plain stores and that the daemon
 * maps. Two helper calls of the kernel's own ring buffer cost as much as the rest of a small
 * record, and its lock serializes threads that run in parallel.
 *
 * Positions count bytes since the ring was created. A writer claims space by moving `written`, with
 * an atomic compare-and-swap, so programs that interrupt each other, or run on several CPUs, need no
 * lock. It then writes the header, marked as busy, the record, and the header without the mark. The
 * reader stops at the first record that is busy, or whose header is not there yet.
 *
 * A header is its record's position and size, combined with a random key that the target does not
 * know. Whatever was in this memory before, for example a string of the target, is therefore not
 * taken for a header.
 *
 * The memory is an array map of chunks, because older kernels limit the size of an element to
 * 4 MiB. A record that starts in a chunk may end in the slack behind it; the next record continues
 * at its position, so that the beginning of the next chunk stays unused.
 */
#ifndef PYPROF_BPF_RING_H
#define PYPROF_BPF_RING_H

#ifndef PYP_BPF_SIDE
#include <linux/types.h>
#endif

#define PYP_RING_SHIFT 21
#define PYP_RING_CHUNK (1u << PYP_RING_SHIFT)
#define PYP_RING_SLACK 49408u /* room for the largest record and its header, a multiple of 256 */
#define PYP_RING_BUSY  1u     /* in a header; sizes are multiples of 8 */

/* On cache lines of their own, because different CPUs write them. */
struct pyp_ring_pos {
	__u64 written; /* by the programs: end of the claimed space */
	__u64 pad0[7];
	__u64 read; /* by the daemon: the space before it is free */
	__u64 pad1[7];
};

_Static_assert(sizeof(struct pyp_ring_pos) == 128, "pyp_ring_pos changed size");

/* The bytes that a record takes in the ring */
#define PYP_RING_BYTES(size) (((__u64)(size) + 8 + 7) & ~(__u64)7)

/* The header of a record that takes `bytes` bytes at position `at` */
#define PYP_RING_HEADER(at, bytes, key) (((__u64)(at) << 16 | (__u64)(bytes)) ^ (key))

#endif
