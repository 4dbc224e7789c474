/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target's share of the sampling timers (private to probe/). Targets with the same period use the
 * same timers, so their number does not increase the number of interrupts. A target has timers of
 * its own if the kernel refuses that, or if it is sampled twice with one period.
 */
#ifndef PYPROF_PROBE_TICKER_H
#define PYPROF_PROBE_TICKER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct ticker;

/*
 * Loads what sharing needs, which takes up to 20 ms: before anything is attached to a target. It is
 * kept for the next target until the last caller declares that it opens no more tickers.
 */
void ticker_prepare(uint64_t period_ns);
void ticker_done(void);

/*
 * Runs the program on every CPU, once per period of the process's CPU time. Returns 0 or a negative
 * errno.
 */
int ticker_open(int prog_fd, pid_t pid, uint64_t period_ns, struct ticker **ret);
/* The same with timers of its own, for a moment. */
int ticker_open_own(int prog_fd, uint64_t period_ns, struct ticker **ret);
/* Right after it returns, the program may still be running on another CPU. NULL is accepted. */
void ticker_free(struct ticker *t);
DEFINE_FREEP(struct ticker, ticker_free)
/* See sampler_jitter. NULL is accepted. */
void ticker_jitter(struct ticker *t, uint64_t now_ns);

#endif
