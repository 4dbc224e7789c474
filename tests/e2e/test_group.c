// SPDX-License-Identifier: BSD-2-Clause
/*
 * --group: its members may read profiles and the status, and control nothing; others may do
 * neither. With a socket that the daemon makes, and with one passed by the service manager.
 */
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

#define MEMBER	 12345u
#define STRANGER 12346u
#define GROUP	 "daemon" /* exists on every Debian, usually without members */

static struct pyprofd d;
static struct traced t;
static char pid[16];

static void setup(void)
{
	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", "0", "1000", NULL);
	pyprofd_init(&d);
	assert_ok(chmod(d.dir, 0755));
}

TestSuite(group, .init = setup);

static void as(uid_t uid, gid_t group)
{
	d.uid = uid;
	d.group = group;
}

static void expect_members_to_read(gid_t group)
{
	json_t *status;

	as(MEMBER, group);
	free(ctl_ok(&d, "ping", NULL));
	status = ctl_status(&d);
	cr_assert(json_array_size(json_object_get(status, "targets")) == 1);
	json_decref(status);
	free(ctl_ok(&d, "snapshot", "-f", "json", NULL));
	free(ctl_ok(&d, "snapshot", "--since-last", NULL));
	free(ctl_ok(&d, "tree", NULL));
	free(ctl_ok(&d, "threads", NULL));
	ctl_fails(&d, 4, "may only read", "attach", "1", NULL);
	ctl_fails(&d, 4, "may only read", "detach", pid, NULL);
	ctl_fails(&d, 4, "may only read", "stop", NULL);
	ctl_fails(&d, 4, "may only read", "start", NULL);
	ctl_fails(&d, 4, "may only read", "clear", NULL);
	ctl_fails(&d, 4, "may only read", "timeline", "-d", "1", "-o", "/dev/null", NULL);
	ctl_fails(&d, 4, "may only read", "shutdown", NULL);
	as(0, 0);
}

static void expect_others_to_fail(const char *what)
{
	as(STRANGER, 0);
	ctl_fails(&d, 4, what, "status", NULL);
	ctl_fails(&d, 4, what, "shutdown", NULL);
	as(0, 0);
}

/* Nothing that members and others tried has changed anything. */
static void finish(void)
{
	json_t *target;

	traced_go(&t);
	traced_expect(&t, "done");
	ctl_until(&d, 0, "events", 2000);
	target = ctl_target(&d, 0);
	cr_assert_str_eq(json_string_value(json_object_get(target, "state")), "tracing");
	json_decref(target);
	pyprofd_shutdown(&d);
	traced_finish(&t);
}

static gid_t the_group(void)
{
	const struct group *g = getgrnam(GROUP);

	cr_assert(g, "no group " GROUP);
	return g->gr_gid;
}

Test(group, members_read)
{
	struct stat st;

	pyprofd_launch(&d, "--pid", pid, "--group", GROUP, NULL);
	pyprofd_ready(&d);
	assert_ok(stat(d.sock, &st));
	cr_assert((st.st_mode & 07777) == 0660 && st.st_gid == the_group());
	expect_members_to_read(the_group());
	expect_others_to_fail("no permission for the socket");
	/* even if the administrator lets them connect */
	assert_ok(chmod(d.sock, 0666));
	expect_others_to_fail("has no permission to use this daemon");
	finish();
}

Test(group, without_it)
{
	pyprofd_launch(&d, "--pid", pid, NULL);
	pyprofd_ready(&d);
	assert_ok(chmod(d.sock, 0666));
	as(MEMBER, the_group());
	ctl_fails(&d, 4, "has no permission to use this daemon", "status", NULL);
	as(0, 0);
	finish();
}

/* As by pyprofd.socket: the first client starts the daemon, whose socket it leaves in place. */
Test(group, activated)
{
	static const char *by[8];
	struct stat st;
	struct ran ran;
	size_t n = 0;

	tool_need("systemd-socket-activate");
	by[n++] = "systemd-socket-activate";
	by[n++] = "--listen";
	by[n++] = d.sock;
	by[n] = NULL;
	d.by = by;
	pyprofd_launch(&d, "--pid", pid, "--group", GROUP, NULL);
	while (stat(d.sock, &st) < 0) {
		cr_assert(!patience_over(), "no socket");
		patience_step();
	}
	assert_ok(chmod(d.sock, 0660));
	assert_ok(chown(d.sock, 0, the_group()));
	as(MEMBER, the_group());
	free(ctl_ok(&d, "ping", NULL));
	expect_members_to_read(the_group());
	expect_others_to_fail("no permission for the socket");
	traced_go(&t);
	traced_expect(&t, "done");
	free(ctl_ok(&d, "shutdown", NULL));
	ran = pyprofd_wait(&d);
	cr_assert(ran.status == 0, "%s", ran.err);
	ran_free(&ran);
	assert_ok(unlink(d.sock)); /* still there, as it is not the daemon's */
	pyprofd_deinit(&d);
	traced_finish(&t);
}

Test(group, unknown)
{
	pyprofd_fails(&d, 2, "there is no group 'no-such-group'", "--group", "no-such-group", NULL);
	pyprofd_deinit(&d);
	traced_go(&t);
	traced_expect(&t, "done");
	traced_finish(&t);
}
