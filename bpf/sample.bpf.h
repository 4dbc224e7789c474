/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Stacks for changes of memory: see sample.bpf.c. */
#ifndef PYPROF_SAMPLE_BPF_H
#define PYPROF_SAMPLE_BPF_H

#include "kern_min.h"

int sample_memory(__u32 tid);

#endif
