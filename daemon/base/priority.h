/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling thread's precedence over others that want a CPU. While a window is open, the target pays for each
 * moment that the daemon or the holder of its probes has to wait.
 */
#ifndef PYPROF_BASE_PRIORITY_H
#define PYPROF_BASE_PRIORITY_H

/*
 * raise: from now on this thread is preferred, but not its children. lower: after as many, it is as it was. Without the
 * privilege (CAP_SYS_NICE), nothing changes.
 */
void priority_raise(void);
void priority_lower(void);

#endif
