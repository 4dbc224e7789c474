/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slow calls in Chrome's trace format (Perfetto, chrome://tracing, speedscope): each call has a track
 * of its own, with the calls and returns inside it. Pure: the daemon's JSON with steps, which may be
 * hostile, in; stream out.
 */
#ifndef PYPROFCTL_SLOW_CHROME_H
#define PYPROFCTL_SLOW_CHROME_H

#include <jansson.h>
#include <stdio.h>

/* Returns 0 or -ENOMEM; errors of the stream are the caller's to check. */
int slow_chrome(const json_t *result, FILE *out);

#endif
