// SPDX-License-Identifier: BSD-2-Clause
/* Dropping the privileges of a sender: see confine.h. */
#include "push/confine.h"

#include <errno.h>
#include <sys/prctl.h>

#include "base/call_filter.h"
#include "base/confine.h"
#include "target/target.h"

#define MEMORY_MORE (UINT64_C(512) << 20) /* bytes beyond the daemon's own mappings */
#define FILES_MAX   64u

static int set_limits(uint64_t memory)
{
	int r = confine_limit(RLIMIT_CORE, 0);

	if (r == 0)
		r = confine_limit(RLIMIT_FSIZE, 0);
	if (r == 0)
		r = confine_limit(RLIMIT_NOFILE, FILES_MAX);
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer maps the whole address space */
	if (r == 0)
		r = confine_limit(RLIMIT_AS, memory + MEMORY_MORE);
#else
	(void)memory;
#endif
	return r;
}

int confine_sender(pid_t parent, size_t memory)
{
	uint64_t mapped = 0;
	int r = prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;

	if (r == 0)
		r = target_unmap_shared(&mapped);
	if (r == 0)
		r = set_limits(mapped + memory);
	if (r == 0)
		r = confine_drop_capabilities();
	/* changing the user resets this attribute and the death signal */
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = -errno;
	if (r == 0)
		r = confine_die_with(parent);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? r : call_filter_install(CALL_FILTER_SENDER);
}
