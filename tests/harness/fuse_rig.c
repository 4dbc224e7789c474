// SPDX-License-Identifier: BSD-2-Clause
/* A daemon and its target beside a process on a stalled file system: see fuse_rig.h. */
#include "harness/fuse_rig.h"

#include <sys/wait.h>
#include <unistd.h>

#include "harness/patience.h"
#include "harness/test.h"

#define EVENTS 1000

void fuse_rig_require(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
}

void fuse_rig_mount(struct fuse_rig *r, const char *content)
{
	if (!fuse_start(&r->fs, content))
		cr_skip_test("needs FUSE");
}

void fuse_rig_daemon(struct fuse_rig *r)
{
	traced_start(&r->neighbour, traced_newest().exe, "run.py", "half_busy", "1000", NULL);
	traced_expect(&r->neighbour, "ready");
	pid_text(r->neighbour_pid, r->neighbour.pid);
	pyprofd_start(&r->d, "--no-verify", "--pid", r->neighbour_pid, NULL);
	traced_go(&r->neighbour);
}

void fuse_rig_hostile(struct fuse_rig *r, const char *exe, const char *script)
{
	traced_start(&r->hostile, exe, script, r->fs.file, NULL);
	traced_expect(&r->hostile, "ready");
	pid_text(r->hostile_pid, r->hostile.pid);
}

int fuse_rig_serve_until(const struct pyprofd *of, pid_t child)
{
	int status;

	while (waitpid(child, &status, WNOHANG) == 0) {
		json_decref(ctl_status(of));
		cr_assert(!patience_over(), "the command does not end");
		patience_pass(PATIENCE_MOMENT_MS);
	}
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

void fuse_rig_check_neighbour(const struct fuse_rig *r, const struct pyprofd *of)
{
	json_int_t lost, events;

	do {
		json_t *t = ctl_target_of(of, r->neighbour.pid);

		cr_assert(t, "the neighbour is not there");
		lost = json_integer_value(json_object_get(t, "lost"));
		events = json_integer_value(json_object_get(t, "events"));
		json_decref(t);
		cr_assert(!patience_over(), "%lld events", (long long)events);
	} while (events <= EVENTS);
	cr_assert_eq(lost, 0);
}

void fuse_rig_end(struct fuse_rig *r)
{
	fuse_end(&r->fs);
	traced_stop(&r->hostile);
	traced_stop(&r->neighbour);
	pyprofd_end(&r->d);
}
