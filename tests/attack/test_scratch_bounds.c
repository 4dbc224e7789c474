// SPDX-License-Identifier: BSD-2-Clause
/* Limits of the self-test's scratch process, with a hostile target: resources and time */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/attack.h"
#include "harness/test.h"
#include "harness/tool.h"

#define V1 "/sys/fs/cgroup"

TestSuite(scratch_bounds);

/* ---- resources --------------------------------------------------------------------------- */

Test(scratch_bounds, shared_memory_is_bounded)
{
	struct attack a = {.uid = ATTACK_USER,
			   .code = "    import mmap\n"
				   "    held = []\n"
				   "    try:\n"
				   "        while len(held) < 48:\n"
				   "            m = mmap.mmap(-1, 32 << 20); held.append(m)\n"
				   "            for at in range(0, 32 << 20, 4096): m[at] = 1\n"
				   "        say('more')\n"
				   "    except (OSError, MemoryError): pass\n"};

	attack_run(&a);
	cr_assert(attack_printed(&a, "ran"), "%s", a.text);
	cr_assert(!attack_printed(&a, "more"), "it took 1.5 GiB of shared memory");
	attack_end(&a);
}

Test(scratch_bounds, private_memory_is_bounded)
{
	struct attack a = {.uid = ATTACK_USER,
			   .code = "    held = []\n"
				   "    try:\n"
				   "        while len(held) < 24: held.append(b'x' * (32 << 20))\n"
				   "        say('more')\n"
				   "    except (OSError, MemoryError): pass\n"};

	attack_run(&a);
	cr_assert(attack_printed(&a, "ran"), "%s", a.text);
	cr_assert(!attack_printed(&a, "more"), "it took 768 MiB of memory");
	attack_end(&a);
}

Test(scratch_bounds, threads_are_bounded)
{
	struct attack a = {.uid = ATTACK_USER,
			   .code = "    import _thread\n"
				   "    lock = _thread.allocate_lock(); lock.acquire()\n"
				   "    _thread.stack_size(32768)\n"
				   "    try:\n"
				   "        for i in range(500):\n"
				   "            _thread.start_new_thread(lock.acquire, ())\n"
				   "        say('more')\n"
				   "    except (OSError, RuntimeError): pass\n"};

	attack_run(&a);
	cr_assert(attack_printed(&a, "ran"), "%s", a.text);
	cr_assert(!attack_printed(&a, "more"), "it started 500 threads");
	attack_end(&a);
}

/* ---- a control group --------------------------------------------------------------------- */

static char groups[4096];
static bool were_there;

/* Whether the group of this controller, of version 1, is there; others are of other daemons. */
static bool is_there(const char *controller)
{
	const char *line = strstr(groups, controller), *at = line ? strchr(line, '/') : NULL;
	char path[512];

	cr_assert(at);
	snprintf(path, sizeof(path), V1 "/%s%.*s", controller, (int)strcspn(at, "\n"), at);
	return access(path, F_OK) == 0;
}

static void read_groups(struct attack *a, pid_t doctor)
{
	char path[64];
	FILE *f;

	(void)a;
	snprintf(path, sizeof(path), "/proc/%d/cgroup",
		 attack_child_of(attack_child_of(doctor, ATTACK_KEEPER), NULL));
	f = fopen(path, "re");
	cr_assert(f, "no interpreter");
	groups[fread(groups, 1, sizeof(groups) - 1, f)] = '\0';
	fclose(f);
	were_there = is_there("memory") && is_there("pids");
}

/*
 * Returns whether the line of a controller (version 1) or of version 2 names a scratch process's
 * group.
 */
static bool bounded_by(const char *controller)
{
	for (const char *line = groups; *line; line = strchrnul(line, '\n')) {
		line += *line == '\n';
		if (strstr(line, controller) && strstr(line, controller) < strchrnul(line, '\n') &&
		    strstr(line, "/pyprofd-scratch-") &&
		    strstr(line, "/pyprofd-scratch-") < strchrnul(line, '\n'))
			return true;
	}
	return false;
}

Test(scratch_bounds, a_control_group_where_one_can_be_made)
{
	struct attack a = {.uid = ATTACK_USER,
			   .code = "    say('held'); say('user')\n",
			   .meanwhile = read_groups};

	if (access(V1 "/memory/cgroup.procs", W_OK) || access(V1 "/pids/cgroup.procs", W_OK))
		cr_skip_test("needs control groups of version 1 that may be written to");
	attack_run(&a);
	cr_assert(attack_printed(&a, "held"), "%s", a.text);
	cr_expect(bounded_by("memory"), "%s", groups);
	cr_expect(bounded_by("pids"), "%s", groups);
	cr_expect(strstr(a.text, "a control group for memory and threads"), "%s", a.text);
	cr_expect(were_there && !is_there("memory") && !is_there("pids"));
	attack_end(&a);
}
