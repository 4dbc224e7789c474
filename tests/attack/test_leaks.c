// SPDX-License-Identifier: BSD-2-Clause
/*
 * However the daemon ends, no breakpoint stays in the target, and the kernel reports no leaked
 * uprobe: it is killed while attaching, while detaching, between windows; it ends while helpers
 * measure. If a process is killed while it attaches or detaches, the kernel leaves breakpoints,
 * which slow the target until it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "harness/caps.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "harness/traced.h"

TestSuite(leaks, .init = caps_require_bpf);

#define KILLS 4u /* in each test: a different number of breakpoints each time */

/* ---- the kernel log ---------------------------------------------------------------------- */

#define COMPLAINT "leaking uprobe"

/* Open the log at its end; -1: unavailable. */
static int log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		cr_assert(lseek(fd, 0, SEEK_END) >= 0);
	return fd;
}

/* Check for messages about processes whose names begin with pyprofd, as those of all daemon
 * processes do. */
static void log_check(int fd)
{
	char line[8192];
	ssize_t n;

	while (fd >= 0 && ((n = read(fd, line, sizeof(line) - 1)) > 0 || errno == EPIPE)) {
		if (n <= 0)
			continue;
		line[n] = '\0';
		cr_assert(!strstr(line, COMPLAINT) || !strstr(line, "pyprofd"), "%s", line);
	}
}

/* ---- killing at critical moments --------------------------------------------------------- */

/* Of the target, in seconds: it need not use all CPUs to reach each breakpoint often. */
#define PAUSE "0.01"

struct victim {
	struct traced t;
	struct sites sites;
	int log;
};

static void victim_start(struct victim *v)
{
	v->log = log_open();
	traced_ready(&v->t, NULL, traced_newest().exe, "load.py", PAUSE, NULL);
	sites_find(&v->sites, v->t.pid);
}

/* The target has verified its computations throughout. */
static void victim_finish(struct victim *v)
{
	traced_say(&v->t, "stop");
	traced_expect(&v->t, "checked ok");
	traced_finish(&v->t);
	log_check(v->log);
	if (v->log >= 0)
		close(v->log);
}

/* Like sites_changed(), with one system call. */
static int changed_now(const struct victim *v)
{
	const struct sites *sites = &v->sites;
	struct iovec there[PYP_ALL_SITES], here[PYP_ALL_SITES];
	uint8_t bytes[PYP_ALL_SITES];
	int changed = 0;

	for (unsigned int i = 0; i < sites->n; i++) {
		there[i].iov_base = (void *)(sites->bias + sites->at[i].vaddr);
		here[i].iov_base = &bytes[i];
		there[i].iov_len = here[i].iov_len = 1;
	}
	if (process_vm_readv(v->t.pid, here, sites->n, there, sites->n, 0) < 0)
		return -1;
	for (unsigned int i = 0; i < sites->n; i++)
		changed += bytes[i] != sites->at[i].bytes[0];
	return changed;
}

/* Busy waiting, as the moment lasts 0.1 ms. */
static void watch(const struct victim *v, bool more_than, int n)
{
	int changed;

	do {
		changed = changed_now(v);
		cr_assert(changed >= 0 && !patience_over(), "it never came");
	} while (more_than ? changed <= n : changed >= n);
}

static void check_restored(const struct victim *v, unsigned int round)
{
	int changed;

	/* What is left behind stays until the target ends. */
	while ((changed = sites_changed(&v->sites, v->t.pid)) > 0 && !patience_over())
		patience_step();
	cr_assert_eq(changed, 0, "%d breakpoints are left behind by kill number %u", changed,
		     round + 1);
}

Test(leaks, killed_while_it_attaches)
{
	struct pyprofd d;
	struct victim v;
	char pid[16];

	victim_start(&v);
	for (unsigned int i = 0; i < KILLS; i++) {
		pyprofd_init(&d);
		pyprofd_launch(&d, "--no-verify", "--pid", pid_text(pid, v.t.pid), NULL);
		watch(&v, true, (int)i % 3);
		pyprofd_kill(&d);
		check_restored(&v, i);
	}
	victim_finish(&v);
}

/* Like pyprofd_kill(); false: on a busy machine the daemon may have ended before. */
static bool kill_if_it_runs(struct pyprofd *d)
{
	struct ran r;
	int status;

	kill(d->pid, SIGKILL);
	r = pyprofd_wait(d);
	status = r.status;
	cr_assert(status == 0 || status == 128 + SIGKILL, "%d: %s", status, r.err);
	ran_free(&r);
	unlink(d->sock);
	pyprofd_deinit(d);
	return status != 0;
}

Test(leaks, killed_while_it_detaches)
{
	unsigned int killed = 0;
	struct pyprofd d;
	struct victim v;
	char pid[16];

	victim_start(&v);
	for (unsigned int i = 0; i < KILLS || !killed; i++) {
		cr_assert(!patience_over(), "it was never caught");
		pyprofd_start(&d, "--no-verify", "--pid", pid_text(pid, v.t.pid), NULL);
		watch(&v, true, (int)v.sites.n - 1);
		kill(d.pid, SIGTERM);
		watch(&v, false, (int)v.sites.n - (int)i % 4);
		killed += kill_if_it_runs(&d);
		check_restored(&v, i);
	}
	victim_finish(&v);
}

/* With ten windows per second, each kill hits an opening or closing window. */
#define BETWEEN 1 /* a site that is also probed between windows */
Test(leaks, killed_between_windows)
{
	struct pyprofd d;
	struct victim v;
	char pid[16];

	victim_start(&v);
	for (unsigned int i = 0; i < KILLS; i++) {
		pyprofd_start(&d, "--no-verify", "--max-overhead", "30", "--pid",
			      pid_text(pid, v.t.pid), NULL);
		watch(&v, true, (int)v.sites.n - 1);
		watch(&v, false, (int)v.sites.n);
		if (i % 2) {
			watch(&v, false, BETWEEN + 1);
			watch(&v, true, BETWEEN);
		}
		pyprofd_kill(&d);
		check_restored(&v, i);
	}
	victim_finish(&v);
}

/*
 * The daemon ends while the helper that measures the cost of events still has probes on a scratch
 * process.
 */
Test(leaks, ended_while_it_measures)
{
	struct pyprofd d;
	struct victim v;
	char pid[16];

	victim_start(&v);
	for (unsigned int i = 0; i < KILLS; i++) {
		pyprofd_start(&d, NULL);
		free(ctl_ok(&d, "attach", pid_text(pid, v.t.pid), NULL));
		patience_pass(i * PATIENCE_WHILE_MS / KILLS);
		pyprofd_shutdown(&d);
		check_restored(&v, i);
	}
	victim_finish(&v);
}
