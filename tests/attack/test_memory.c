// SPDX-License-Identifier: BSD-2-Clause
/*
 * Targets whose memory and files are on a FUSE file system whose server does not respond. Readers
 * block for ever and cannot be killed; the daemon continues to serve its clients and other targets,
 * and reports the problem.
 */
#include <unistd.h>

#include "harness/fuse_rig.h"
#include "harness/test.h"

#define PYTHON "/usr/bin/python3"
#define SCRIPT "fuse_over.py"

static struct fuse_rig rig;

static void end(void)
{
	fuse_rig_end(&rig);
}

TestSuite(memory, .init = fuse_rig_require, .fini = end);

static void cover(void)
{
	traced_go(&rig.hostile);
	traced_expect(&rig.hostile, "covered");
}

/* Run a pyprofctl command for the hostile process while the daemon serves other clients. It must
 * report the reason of its failure. Returns the exit code. */
static int fails_beside(const char *command, const char *option)
{
	const char *pid = rig.hostile_pid;
	pid_t child = fork();

	if (child == 0) {
		struct ran r = option ? ctl(&rig.d, command, option, pid, NULL)
				      : ctl(&rig.d, command, pid, NULL);

		_exit(strstr(r.err, "memory") || strstr(r.err, "FUSE") ? r.status : 100);
	}
	return fuse_rig_serve_until(&rig.d, child);
}

/* Arguments and the exec's random bytes cannot be read. */
Test(memory, of_a_process_to_be_attached)
{
	int status;

	fuse_rig_mount(&rig, NULL);
	fuse_rig_daemon(&rig);
	fuse_rig_hostile(&rig, PYTHON, SCRIPT);
	cover();
	status = fails_beside("attach", NULL);
	cr_assert_eq(status, 1, "status %d", status);
	fuse_rig_check_neighbour(&rig, &rig.d);
}

/* The same for a process that is traced already. */
Test(memory, of_a_target)
{
	int status;

	fuse_rig_mount(&rig, NULL);
	fuse_rig_daemon(&rig);
	fuse_rig_hostile(&rig, PYTHON, SCRIPT);
	free(ctl_ok(&rig.d, "attach", rig.hostile_pid, NULL));
	cover();
	free(ctl_ok(&rig.d, "stop", "--pid", rig.hostile_pid, NULL));
	status = fails_beside("start", "--pid");
	cr_assert_eq(status, 1, "status %d", status);
	fuse_rig_check_neighbour(&rig, &rig.d);
}

/* The kernel would read it while holding a lock that each fork needs. */
Test(memory, of_an_executable)
{
	int status;

	fuse_rig_mount(&rig, PYTHON);
	setenv("PYTHONHOME", "/usr", 1);
	fuse_rig_hostile(&rig, rig.fs.file, SCRIPT);
	unsetenv("PYTHONHOME");
	fuse_silence(&rig.fs);
	fuse_rig_daemon(&rig);
	status = fails_beside("attach", NULL);
	cr_assert_eq(status, 5, "status %d", status);
	fuse_rig_check_neighbour(&rig, &rig.d);
}
