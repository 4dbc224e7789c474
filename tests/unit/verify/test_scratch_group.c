// SPDX-License-Identifier: BSD-2-Clause
/* verify/scratch_group.c: where our own control group is, from the kernel's texts. */
#include "verify/scratch_group.h"

#include <errno.h>
#include <unistd.h>

#include "harness/test.h"

static const char mounts[] =
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
	"35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 master:1 - cgroup cgroup rw,memory\n"
	"39 31 0:36 /docker/1 /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
static const char groups[] = "8:pids:/docker/1/a\n"
			     "4:memory:/system.slice/x:y\n"
			     "2:cpu,cpuacct:/\n"
			     "0::/user.slice\n";

static void expect(const char *controller, const char *want)
{
	char dir[256];

	assert_ok(scratch_group_dir(mounts, groups, controller, dir, sizeof(dir)));
	cr_assert_str_eq(dir, want);
}

Test(scratch_group, where_it_is)
{
	expect("memory", "/sys/fs/cgroup/memory/system.slice/x:y");
	expect("cpuacct", "/sys/fs/cgroup/cpu/");
	expect("pids", "/sys/fs/cgroup/pids/a");
	expect("", "/sys/fs/cgroup/unified/user.slice");
	check_no_leaks();
}

Test(scratch_group, where_there_is_none)
{
	char dir[256];

	assert_err(scratch_group_dir(mounts, groups, "cpus", dir, sizeof(dir)), -ENOENT);
	assert_err(scratch_group_dir(mounts, "", "memory", dir, sizeof(dir)), -ENOENT);
	assert_err(scratch_group_dir("", groups, "memory", dir, sizeof(dir)), -ENOENT);
	assert_err(scratch_group_dir("1 2 -\n - \n", groups, "", dir, sizeof(dir)), -ENOENT);
	/* Mounted from a group that is not above ours, or only begins alike. */
	assert_err(scratch_group_dir(mounts, "8:pids:/docker/10\n", "pids", dir, sizeof(dir)),
		   -ENOENT);
	assert_err(scratch_group_dir(mounts, "8:pids:/\n", "pids", dir, sizeof(dir)), -ENOENT);
	/* Above what this namespace shows. */
	assert_err(scratch_group_dir(mounts, "0::/../x\n", "", dir, sizeof(dir)), -ENOENT);
	assert_err(scratch_group_dir(mounts, groups, "memory", dir, 20), -ENAMETOOLONG);
	check_no_leaks();
}

/* Whatever can be made is taken away again, and another process's is left alone. */
Test(scratch_group, made_and_taken_away)
{
	struct scratch_group g = {0};

	scratch_group_new(&g);
	for (unsigned int i = 0; i < g.n; i++)
		cr_assert(access(g.v[i].path, F_OK) == 0);
	cr_assert(g.memory || g.pids || g.n == 0);
	scratch_group_end(&g);
	for (unsigned int i = 0; i < SCRATCH_GROUPS; i++)
		cr_assert(access(g.v[i].path, F_OK) < 0);
	check_no_leaks();
}
