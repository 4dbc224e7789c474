/* SPDX-License-Identifier: BSD-2-Clause */
/* Helper processes of the self-test and of calibration (private to verify/). */
#ifndef PYPROF_VERIFY_SEPARATE_H
#define PYPROF_VERIFY_SEPARATE_H

#include <sys/types.h>

#include "verify/result.h"

/* How long to wait for the end of a killed helper, or of a helper that has answered, ms */
#define SEPARATE_END_MS 20

/*
 * In the helper, after fork(): it ends with its parent, ignores signals from the terminal, which are
 * for the daemon, and closes all descriptors but `out` and the target's pidfd, which detects that
 * the pid was reused. A link that stays open would keep its probes attached after the daemon's end.
 * -ESRCH: the parent has ended already; else the error of a system call.
 */
int separate_begin(const struct verify_opts *o, pid_t parent, int out);

/*
 * Kills the helper, if *helper is not 0, and sets it to 0. The reaper waits for a helper that does
 * not end soon. The uprobe holder process detaches its probes (probe/holder.h).
 */
void separate_end(pid_t *helper);

#endif
