// SPDX-License-Identifier: BSD-2-Clause
#include "base/priority.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RAISED (-10)
/* A short slice has an early deadline (EEVDF, since 6.12): the thread runs at once, but not for long. */
#define SLICE_NS      200000u
#define RESET_ON_FORK 0x01 /* SCHED_FLAG_RESET_ON_FORK */

/* struct sched_attr (include/uapi/linux/sched/types.h), which the C library does not declare */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* Where another policy or value was set for the daemon, it stays. */
static _Thread_local struct {
	int before;
	bool raised;
	unsigned int users;
} state;

static int set(int nice, uint64_t slice_ns, uint64_t flags)
{
	struct attr a = {
		.size = sizeof(a),
		.policy = SCHED_OTHER,
		.flags = flags,
		.nice = nice,
		.runtime = slice_ns,
	};

	return (int)syscall(SYS_sched_setattr, 0, &a, 0);
}

void priority_raise(void)
{
	if (state.users++ || sched_getscheduler(0) != SCHED_OTHER)
		return;
	state.before = getpriority(PRIO_PROCESS, 0);
	state.raised = state.before > RAISED && set(RAISED, SLICE_NS, RESET_ON_FORK) == 0;
}

void priority_lower(void)
{
	if (!state.users || --state.users || !state.raised)
		return;
	(void)set(state.before, 0, 0);
	state.raised = false;
}
