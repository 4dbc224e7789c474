// SPDX-License-Identifier: BSD-2-Clause
/*
 * Breakpoints that a tracer has left in a target's code: doctor shows their address and cost,
 * attach warns about them, and those at the planned sites are removed when the trace ends.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/caps.h"
#include "harness/daemon.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "harness/traced.h"

TestSuite(stale, .init = caps_require_bpf);

/* Write a breakpoint as uprobes leave it: one byte in the process's copy of its code. */
static void leave_behind(const struct sites *sites, pid_t pid, unsigned int site)
{
	_cleanup_close_ int fd = -1;
	const uint8_t breakpoint = 0xcc;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert(fd >= 0);
	cr_assert_eq(pwrite(fd, &breakpoint, 1, (off_t)(sites->bias + sites->at[site].vaddr)), 1);
}

static void check_warning(const struct pyprofd *d)
{
	_cleanup_free_ char *status = ctl_ok(d, "status", NULL);
	_cleanup_free_ char *report = ctl_ok(d, "snapshot", "-f", "json", NULL);

	cr_assert(strstr(status, "2 of ") && strstr(status, "had breakpoints before"), "%s",
		  status);
	cr_assert(strstr(report, "had breakpoints before"));
}

static void check_doctor(const struct pyprofd *d, const struct sites *sites, const char *pid)
{
	_cleanup_free_ char *said = ctl_ok(d, "doctor", pid, NULL);
	char where[32];

	snprintf(where, sizeof(where), "0x%llx",
		 (unsigned long long)(sites->bias + sites->at[0].vaddr));
	cr_assert(strstr(said, "breakpoints  2 in its code") && strstr(said, where), "%s", said);
	cr_assert(strstr(said, "0.5 us"), "%s", said);
}

static void check_reported(struct pyprofd *d)
{
	struct ran r;

	free(ctl_ok(d, "shutdown", NULL));
	r = pyprofd_wait(d);
	cr_assert_eq(r.status, 0);
	cr_assert(strstr(r.err, "had breakpoints before"), "%s", r.err);
	ran_free(&r);
	pyprofd_deinit(d);
}

/* The target is waiting, so it does not execute the breakpoints. */
Test(stale, is_found_and_removed)
{
	struct sites sites;
	struct pyprofd d;
	struct traced t;
	char pid[16];

	traced_ready(&t, NULL, traced_newest().exe, "run.py", "mixed", NULL);
	sites_find(&sites, t.pid);
	leave_behind(&sites, t.pid, 0);
	leave_behind(&sites, t.pid, sites.n - 1);
	pyprofd_start(&d, NULL);
	check_doctor(&d, &sites, pid_text(pid, t.pid));
	free(ctl_ok(&d, "attach", pid, NULL));
	check_warning(&d);
	free(ctl_ok(&d, "stop", NULL));
	cr_assert_eq(sites_changed(&sites, t.pid), 0, "they are still there");
	check_reported(&d);
	traced_go(&t);
	traced_expect(&t, "done");
	traced_finish(&t);
	check_no_leaks();
}

/* Without stale breakpoints, doctor and status do not mention any. */
Test(stale, nothing_is_there)
{
	_cleanup_free_ char *said = NULL, *status = NULL;
	struct pyprofd d;
	struct traced t;
	char pid[16];

	traced_ready(&t, NULL, traced_newest().exe, "run.py", "mixed", NULL);
	pyprofd_start(&d, NULL);
	said = ctl_ok(&d, "doctor", pid_text(pid, t.pid), NULL);
	cr_assert(!strstr(said, "breakpoints"), "%s", said);
	free(ctl_ok(&d, "attach", pid, NULL));
	status = ctl_ok(&d, "status", NULL);
	cr_assert(!strstr(status, "breakpoints"), "%s", status);
	pyprofd_shutdown(&d);
	traced_go(&t);
	traced_finish(&t);
	check_no_leaks();
}
