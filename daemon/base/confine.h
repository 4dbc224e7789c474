/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of dropping privileges in forked helper processes, for inspect/confine.c and
 * push/confine.c. Functions return 0 or a negative errno.
 */
#ifndef PYPROF_BASE_CONFINE_H
#define PYPROF_BASE_CONFINE_H

#include <sys/resource.h>
#include <sys/types.h>

/*
 * Makes the kernel kill this process when its parent ends; detects a parent that has ended already.
 */
int confine_die_with(pid_t parent);

/* Becomes the user nobody, without capabilities. */
int confine_drop_capabilities(void);

/* what: RLIMIT_… */
int confine_limit(int what, rlim_t n);

#endif
