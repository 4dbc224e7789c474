/* SPDX-License-Identifier: BSD-2-Clause */
/* Dropping the privileges of a helper process, for good. */
#ifndef PYPROF_BASE_CONFINE_H
#define PYPROF_BASE_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/call_filter.h"

struct confine {
	enum call_filter calls;
	uint64_t caps;	    /* capabilities to keep, as bits 1 << CAP_… */
	bool own_user;	    /* become a user that has no other process, and lose all capabilities */
	bool limits;	    /* no core files, no writing to files, and what follows: */
	bool no_threads;    /* nor processes */
	unsigned int files; /* descriptors */
	uint64_t memory;    /* bytes beyond what is mapped now */
};

/*
 * From now on this process is not dumpable, ends with its parent, whose pid is `parent`, has no way
 * to gain privileges, and only these system calls. Returns 0 or a negative errno; -ESRCH: the
 * parent has ended.
 */
int confine(const struct confine *c, int parent);

/* The capabilities in effect, as bits 1 << CAP_… */
uint64_t confine_capabilities(void);
/* Gives up all others. Returns 0 or a negative errno. */
int confine_keep_capabilities(uint64_t keep);

#endif
