// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes blocked in the middle of an exec: the kernel closes a file of a FUSE file system whose
 * server does not respond. On Linux 6.18, reads of their stat, exe, auxv, map_files and fd then
 * block equally long. The daemon continues to serve its clients and other targets.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/fuse_rig.h"
#include "harness/patience.h"
#include "harness/test.h"

#define LOOKS 6 /* PATIENCE_WHILE_MS apart: longer than the interval of all periodic tasks */

static struct fuse_rig rig;
static struct pyprofd second;

static void end(void)
{
	fuse_end(&rig.fs);
	pyprofd_end(&second);
	fuse_rig_end(&rig);
}

TestSuite(exec, .init = fuse_rig_require, .fini = end);

static void start_hostile(void)
{
	fuse_rig_mount(&rig, NULL);
	fuse_rig_hostile(&rig, "/usr/bin/python3", "fuse_exec.py");
}

static bool has_begun(void *ctx)
{
	return fuse_holds_a_close(ctx);
}

static void stop_in_exec(void)
{
	fuse_silence(&rig.fs);
	traced_go(&rig.hostile);
	patience_until(has_begun, &rig.fs, "the exec");
}

/* The exec is blocked until end(), so the daemon waits for it only if it never answers again. */
static void watch(const struct pyprofd *of)
{
	for (int i = 0; i < LOOKS; i++) {
		json_decref(ctl_status(of));
		patience_pass(PATIENCE_WHILE_MS);
	}
}

/* Attach in the background, requesting the status meanwhile. Returns the exit code. */
static int attach_beside(const struct pyprofd *to, const char *pid, const char *why)
{
	pid_t child = fork();

	if (child == 0) {
		struct ran r = ctl(to, "attach", pid, NULL);

		_exit(why && !strstr(r.err, why) ? 100 : r.status);
	}
	return fuse_rig_serve_until(to, child);
}

static void stop_neighbour(const struct pyprofd *of)
{
	fuse_rig_check_neighbour(&rig, of);
	free(ctl_ok(of, "stop", "--pid", rig.neighbour_pid, NULL));
	fuse_rig_check_neighbour(&rig, of);
}

static bool reports(const struct pyprofd *of, const char *what)
{
	_cleanup_free_ char *status = ctl_ok(of, "status", NULL);

	return strstr(status, what) != NULL;
}

Test(exec, of_a_process_to_be_attached)
{
	fuse_rig_daemon(&rig);
	start_hostile();
	stop_in_exec();
	cr_assert_eq(attach_beside(&rig.d, rig.hostile_pid, "timed out"), 1);
	/* The daemon now refuses it at once. */
	cr_assert_eq(attach_beside(&rig.d, rig.hostile_pid, "timed out"), 1);
	watch(&rig.d);
	stop_neighbour(&rig.d);
}

/* The blocked process stays a target; after the exec the daemon detects its new program. */
Test(exec, of_a_target)
{
	fuse_rig_daemon(&rig);
	start_hostile();
	free(ctl_ok(&rig.d, "attach", rig.hostile_pid, NULL));
	stop_in_exec();
	watch(&rig.d);
	stop_neighbour(&rig.d);
	free(ctl_ok(&rig.d, "stop", "--pid", rig.hostile_pid, NULL));
	ctl_fails(&rig.d, 1, "timed out", "start", "--pid", rig.hostile_pid, NULL);
	watch(&rig.d);
}

/* To find another daemon, a daemon reads all processes; those that do not respond are skipped. */
Test(exec, of_a_stranger)
{
	char tracer[64];

	start_hostile();
	stop_in_exec();
	fuse_rig_daemon(&rig);
	pyprofd_start(&second, "--no-verify", NULL);
	cr_assert_eq(attach_beside(&second, rig.neighbour_pid, NULL), 0);
	watch(&second);
	watch(&rig.d);
	stop_neighbour(&second);
	snprintf(tracer, sizeof(tracer), "another tracer (pid %d)", (int)rig.d.pid);
	cr_assert(reports(&second, tracer), "the other daemon is not named");
	stop_neighbour(&rig.d);
}
