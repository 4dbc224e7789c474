/* SPDX-License-Identifier: BSD-2-Clause */
/* Points in time as people write them. */
#ifndef PYPROFCTL_FLEET_TIME_H
#define PYPROFCTL_FLEET_TIME_H

#include <stdint.h>

#include "base/diag.h"

/*
 * "now", "-15m" (before now), "14:00" (today), "2026-11-26", "2026-11-26T14:00[:30][Z]" (with Z in
 * UTC, else in this machine's time zone) → seconds of UNIX time. now_s: the present time; option:
 * named in errors. Returns 0 or -EINVAL (exit code 2).
 */
int fleet_time_parse(const char *text, uint64_t now_s, const char *option, uint64_t *ret,
		     struct diag *diag);

#endif
