// SPDX-License-Identifier: BSD-2-Clause
/*
 * A missing kernel feature is named, with its exit code; the kernel's features determine the
 * mechanism.
 */
#include "probe/kcaps.h"

#include <errno.h>
#include <fcntl.h>

#include "harness/test.h"

/* A simulated kernel: its answers; initially those of Linux 6.10 */
static struct {
	uint64_t caps;
	int btf, ring, loop, switch_state, program, link, link_pid, tracefs;
	unsigned int tracefs_asked;
} kernel;

enum { SYS_PTRACE = 19, SYS_ADMIN = 21, PERFMON = 38, BPF = 39 };
#define CAP(n) (UINT64_C(1) << (n))
#define ENOUGH (CAP(SYS_PTRACE) | CAP(PERFMON) | CAP(BPF))

static void setup(void)
{
	kernel.caps = ENOUGH;
	kernel.loop = kernel.switch_state = 0;
	kernel.btf = kernel.ring = kernel.program = kernel.tracefs = 0;
	kernel.link = -EBADF;
	kernel.link_pid = -EINVAL;
	kernel.tracefs_asked = 0;
}

TestSuite(kcaps, .init = setup);

static int capabilities(uint64_t *ret)
{
	*ret = kernel.caps;
	return 0;
}

static int btf(void)
{
	return kernel.btf;
}

static int ring(void)
{
	return kernel.ring;
}

static int loop(void)
{
	return kernel.loop;
}

static int switch_state(void)
{
	return kernel.switch_state;
}

static int empty_program(void)
{
	return kernel.program ? kernel.program : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int multi_link(int prog_fd, pid_t pid)
{
	cr_assert(prog_fd >= 0);
	return pid ? kernel.link_pid : kernel.link;
}

static int tracefs(void)
{
	kernel.tracefs_asked++;
	return kernel.tracefs;
}

static const struct kcaps_system fake = {
	.capabilities = capabilities,
	.btf = btf,
	.ring = ring,
	.loop = loop,
	.switch_state = switch_state,
	.empty_program = empty_program,
	.multi_link = multi_link,
	.tracefs = tracefs,
};

static void expect_mechanism(const char *wish, enum probe_mechanism want)
{
	enum probe_mechanism m = 99;
	struct diag diag = {0};

	assert_diag_ok(kcaps_check(&fake, wish, &m, &diag), &diag);
	cr_assert_eq(m, want, "%s, not %s", probe_mechanism_name(m), probe_mechanism_name(want));
}

static void expect_missing(const char *wish, int exit, const char *what)
{
	enum probe_mechanism m = 99;
	struct diag diag = {0};

	cr_assert(kcaps_check(&fake, wish, &m, &diag) < 0, "%s", what);
	cr_assert_eq(diag.exit, exit, "%s: exit %d", diag.msg, diag.exit);
	cr_assert(strstr(diag.msg, what), "\"%s\" does not name %s", diag.msg, what);
	cr_assert_eq(m, 99, "set though it failed");
}

Test(kcaps, capabilities)
{
	kernel.caps = ENOUGH & ~CAP(BPF);
	expect_missing(NULL, PYP_EXIT_PERMISSION, "CAP_BPF");
	kernel.caps = ENOUGH & ~CAP(PERFMON);
	expect_missing(NULL, PYP_EXIT_PERMISSION, "CAP_PERFMON");
	kernel.caps = ENOUGH & ~CAP(SYS_PTRACE);
	expect_missing(NULL, PYP_EXIT_PERMISSION, "CAP_SYS_PTRACE");
	kernel.caps = CAP(SYS_ADMIN) | CAP(SYS_PTRACE);
	expect_mechanism(NULL, PROBE_MULTI);
}

Test(kcaps, features)
{
	kernel.btf = -ENOENT;
	expect_missing(NULL, PYP_EXIT_UNTRACEABLE, "BTF");
	setup();
	kernel.ring = -EINVAL;
	expect_missing(NULL, PYP_EXIT_UNTRACEABLE, "ring buffer");
	kernel.ring = -ENOSYS;
	expect_missing(NULL, PYP_EXIT_UNTRACEABLE, "bpf() system call");
	setup();
	kernel.link = -EOPNOTSUPP;
	expect_missing(NULL, PYP_EXIT_UNTRACEABLE, "uprobes");
}

/* A kernel that is too old for the programs is reported before the verifier refuses them. */
Test(kcaps, too_old_for_the_programs)
{
	struct diag diag = {0};

	kernel.loop = -ENOTSUP;
	expect_missing(NULL, PYP_EXIT_UNTRACEABLE, "bpf_loop");
	cr_assert(kcaps_check(&fake, NULL, NULL, &diag) < 0);
	cr_assert(strstr(diag.hint, "5.17"), "%s", diag.hint);
	setup();
	diag = (struct diag){0};
	kernel.switch_state = -ENOTSUP;
	expect_missing(NULL, PYP_EXIT_UNTRACEABLE, "sched_switch");
	cr_assert(kcaps_check(&fake, NULL, NULL, &diag) < 0);
	cr_assert(strstr(diag.hint, "5.18"), "%s", diag.hint);
	setup();
	/* If a check fails, the verifier decides. */
	kernel.loop = kernel.switch_state = -EPERM;
	expect_mechanism(NULL, PROBE_MULTI);
}

/* This kernel runs the programs, so it has the features that they use. */
Test(kcaps, this_kernel)
{
	int r = kcaps_kernel.loop();

	if (r == -EPERM)
		cr_skip_test("needs root");
	assert_ok(r);
	assert_ok(kcaps_kernel.switch_state());
}

Test(kcaps, refusals)
{
	kernel.ring = -EPERM;
	expect_missing(NULL, PYP_EXIT_PERMISSION, "BPF map");
	setup();
	kernel.program = -EPERM;
	expect_missing(NULL, PYP_EXIT_PERMISSION, "BPF program");
}

/* The best mechanism is used, and the others are not even checked. */
/* Debian's 6.1 refuses perf events to users with CAP_PERFMON alone. */
Test(kcaps, perf_events)
{
	struct diag d = {0};

	cr_assert_eq(kcaps_no_event(&fake, -EACCES, "set the timers", &d), -EACCES);
	cr_assert_eq(d.exit, PYP_EXIT_PERMISSION);
	cr_assert_neq(strstr(d.msg, "cannot set the timers: CAP_SYS_ADMIN is missing"), NULL, "%s",
		      d.msg);
	d = (struct diag){0};
	cr_assert_eq(kcaps_no_event(&fake, -ENODEV, "set the timers", &d), -ENODEV);
	cr_assert_eq(d.exit, PYP_EXIT_FAILURE);
	d = (struct diag){0};
	kernel.caps |= CAP(SYS_ADMIN);
	cr_assert_eq(kcaps_no_event(&fake, -EACCES, "set the timers", &d), -EACCES);
	cr_assert_eq(strstr(d.msg, "CAP_SYS_ADMIN"), NULL, "%s", d.msg);
}

Test(kcaps, since_6_10)
{
	expect_mechanism(NULL, PROBE_MULTI);
	cr_assert_eq(kernel.tracefs_asked, 0);
}

Test(kcaps, from_6_6_to_6_9)
{
	kernel.link_pid = -EBADF;
	expect_mechanism(NULL, PROBE_TRACEFS);
	kernel.tracefs = -EPERM;
	expect_mechanism(NULL, PROBE_MULTI_ALL);
}

Test(kcaps, before_6_6)
{
	/*
	 * Either the attach type is unknown when the program is loaded, or the link type when it is
	 * created.
	 */
	kernel.program = -EINVAL;
	expect_mechanism(NULL, PROBE_TRACEFS);
	setup();
	kernel.link = kernel.link_pid = -EINVAL;
	expect_mechanism(NULL, PROBE_TRACEFS);
	kernel.tracefs = -EACCES;
	expect_missing(NULL, PYP_EXIT_PERMISSION, "CAP_SYS_ADMIN");
	kernel.caps = ENOUGH | CAP(SYS_ADMIN);
	expect_missing(NULL, PYP_EXIT_PERMISSION, "CAP_DAC_OVERRIDE");
	kernel.tracefs = -ENODEV;
	expect_missing(NULL, PYP_EXIT_UNTRACEABLE, "uprobe events");
}

Test(kcaps, wishes)
{
	expect_mechanism("multi", PROBE_MULTI);
	expect_mechanism("tracefs", PROBE_TRACEFS);
	expect_mechanism("multi-all", PROBE_MULTI_ALL);
	expect_missing("kprobes", PYP_EXIT_USAGE, "kprobes");
	kernel.tracefs = -ENODEV;
	expect_missing("tracefs", PYP_EXIT_UNTRACEABLE, "tracefs");
	kernel.link_pid = -EBADF;
	expect_missing("multi", PYP_EXIT_UNTRACEABLE, "multi");
}
