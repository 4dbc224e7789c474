/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consumers of finished intervals: history, receivers on other machines. The producer calls each of a
 * list once per interval, from the event loop.
 */
#ifndef PYPROF_INTERVAL_SINK_H
#define PYPROF_INTERVAL_SINK_H

#include "interval/interval.h"

struct interval_sink {
	/* The interval is borrowed for the duration of the call, which must not block. */
	void (*take)(void *ctx, const struct interval *iv);
	void *ctx;
	struct interval_sink *next; /* NULL: the last one */
};

static inline void interval_deliver(const struct interval_sink *sinks, const struct interval *iv)
{
	for (; sinks; sinks = sinks->next)
		sinks->take(sinks->ctx, iv);
}

#endif
