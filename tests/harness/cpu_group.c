// SPDX-License-Identifier: BSD-2-Clause
/* A cgroup that limits CPU time: see cpu_group.h. */
#include "harness/cpu_group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness/patience.h"
#include "harness/test.h"

#define CPU_GROUPS "/sys/fs/cgroup/cpu"

static char group[128];

static void group_write(const char *name, long value)
{
	char path[192], text[32];
	int fd, n = snprintf(text, sizeof(text), "%ld", value);

	snprintf(path, sizeof(path), "%s/%s", group, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert(fd >= 0 && write(fd, text, (size_t)n) == n, "%s: %s", path, strerror(errno));
	close(fd);
}

void cpu_group_make(void)
{
	snprintf(group, sizeof(group), CPU_GROUPS "/pyprof-test-%d", getpid());
	if (mkdir(group, 0700) < 0) {
		group[0] = '\0';
		cr_skip_test("needs the cpu controller of cgroup v1: %s: %s", CPU_GROUPS,
			     strerror(errno));
	}
	group_write("cpu.cfs_period_us", CPU_GROUP_PERIOD);
}

bool cpu_group_made(void)
{
	return group[0];
}

void cpu_group_add(pid_t pid)
{
	group_write("cgroup.procs", pid);
}

void cpu_group_quota(long us)
{
	group_write("cpu.cfs_quota_us", us);
}

void cpu_group_remove(void)
{
	/* EBUSY: a process is still in it */
	while (group[0] && rmdir(group) < 0 && errno == EBUSY && !patience_over())
		patience_step();
	group[0] = '\0';
}
