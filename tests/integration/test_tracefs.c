// SPDX-License-Identifier: BSD-2-Clause
/*
 * The mechanism for kernels without multi-uprobe links, selected by an environment variable: counts
 * are equal, children are unaffected, and no definition is left behind, even by a daemon that is
 * killed. (The Makefile also runs some other suites with this mechanism.)
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "harness/caps.h"
#include "harness/counts.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/probe_rig.h"
#include "harness/sites.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "probe/kcaps.h"
#include "probe/uprobe_event.h"

static void setup(void)
{
	cr_assert(setenv(KCAPS_WISH, "tracefs", 1) == 0);
	caps_require_bpf();
}

TestSuite(tracefs, .init = setup);

/* Opens tracefs' file of definitions, wherever it is mounted. */
static int open_events(int flags)
{
	_cleanup_close_ int fs = fsopen("tracefs", FSOPEN_CLOEXEC), dir = -1;
	int fd;

	cr_assert(fs >= 0 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
	dir = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	fd = openat(dir, "uprobe_events", flags | O_CLOEXEC);
	cr_assert(fd >= 0);
	return fd;
}

static void command(const char *text)
{
	_cleanup_close_ int fd = open_events(O_WRONLY | O_APPEND);

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text), "%s: %s", text,
		     strerror(errno));
}

/* Returns the number of lines of uprobe_events that begin with prefix. */
static unsigned int definitions(const char *prefix)
{
	_cleanup_fclose_ FILE *f = fdopen(open_events(O_RDONLY), "r");
	unsigned int n = 0;
	char line[512];

	cr_assert(f);
	while (fgets(line, sizeof(line), f))
		n += strncmp(line, prefix, strlen(prefix)) == 0;
	return n;
}

/* The prefix of a process's definitions: "p:pyprofd_NAMESPACE_PID_". */
static const char *prefix_of(pid_t pid, char out[64])
{
	struct stat st;

	cr_assert(stat("/proc/self/ns/pid", &st) == 0);
	snprintf(out, 64, "p:pyprofd_%lx_%x_", (unsigned long)st.st_ino, (unsigned int)pid);
	return out;
}

Test(tracefs, counts)
{
	const struct interpreter py = traced_newest();
	char *dir = temp_dir_new();

	cr_assert(counts_equal(&py, "mixed", dir));
	temp_dir_remove(dir);
	check_no_leaks();
}

Test(tracefs, definitions_are_removed)
{
	struct probe_rig rig;
	char prefix[64];

	prefix_of(getpid(), prefix);
	probe_rig_start(&rig, 0);
	cr_assert_eq(probe_mechanism(rig.probe), PROBE_TRACEFS);
	cr_assert_eq(definitions(prefix), rig.plan.nsites);
	probe_detach(rig.probe);
	cr_assert_eq(definitions(prefix), 0);
	probe_rig_attach(&rig);
	cr_assert_eq(definitions(prefix), rig.plan.nsites);
	probe_rig_stop(&rig);
	cr_assert_eq(definitions(prefix), 0);
	check_no_leaks();
}

/* There are no windows: what is observed by default is sampled, and a limit that was asked for is refused. */
Test(tracefs, the_default_is_to_sample)
{
	struct traced t;
	struct diag diag = {0};

	traced_ready(&t, NULL, traced_newest().exe, "run.py", "busy_empty", "0", NULL);
	t.max_overhead = 10;
	traced_attach(&t);
	cr_assert_eq(traced_status(&t).mode.mode, MODE_SAMPLE);
	traced_stop(&t);
	traced_ready(&t, NULL, traced_newest().exe, "run.py", "busy_empty", "0", NULL);
	t.max_overhead = 10;
	t.asked = true;
	cr_assert_eq(traced_try_attach(&t, &diag), -ENOTSUP);
	cr_assert(strstr(diag.hint, "--exact or --mode sample"), "%s", diag.hint);
	traced_stop(&t);
}

/* An attach that fails leaves no definitions. */
Test(tracefs, definitions_of_a_failure)
{
	struct probe_rig rig;
	struct diag diag = {0};
	char prefix[64];
	uint64_t ts;

	prefix_of(getpid(), prefix);
	probe_rig_start(&rig, 0);
	probe_detach(rig.probe);
	rig.plan.sites[FAKE_LEAVE].offset = (uint64_t)1 << 40;
	cr_assert(probe_attach(rig.probe, &ts, &diag) < 0 && diag.msg[0]);
	cr_assert_eq(definitions(prefix), 0);
	rig.plan.sites[FAKE_LEAVE].offset = rig.plan.sites[FAKE_ENTER].offset;
	cr_assert(probe_attach(rig.probe, &ts, &diag) < 0 && diag.msg[0], "two at one place");
	cr_assert_eq(definitions(prefix), 0);
	probe_rig_stop(&rig);
}

struct wanted {
	const struct sites *sites;
	int changed;
};

static bool sites_are(struct traced *t, void *ctx)
{
	const struct wanted *w = ctx;

	return sites_changed(w->sites, t->pid) == w->changed;
}

/* Earlier, the probes that measure the forecast come and go. */
static bool is_traced(struct traced *t, void *ctx)
{
	struct ran status = ctl(ctx, "status", NULL);
	bool ret = strstr(status.out, "tracing");

	(void)t;
	ran_free(&status);
	return ret;
}

static bool no_definitions(struct traced *t, void *ctx)
{
	(void)t;
	return definitions(ctx) == 0;
}

/*
 * When the daemon is killed, the process that holds its probes detaches them and removes their
 * definitions. Definitions of other live processes stay.
 */
Test(tracefs, daemon_is_killed)
{
	char prefix[64], mine[64], pid[16];
	struct sites sites;
	struct wanted on = {.sites = &sites}, off = {.sites = &sites};
	struct traced t;
	struct probe_rig rig;
	struct pyprofd d;

	traced_start(&t, traced_newest().exe, "load.py", NULL);
	traced_expect(&t, "ready");
	sites_find(&sites, t.pid);
	on.changed = (int)sites.n;
	pyprofd_init(&d);
	pyprofd_launch(&d, "--pid", pid_text(pid, t.pid), "--no-verify", NULL);
	prefix_of(d.pid, prefix);
	traced_until(&t, is_traced, &d, "a traced target");
	traced_until(&t, sites_are, &on, "the daemon's probes");
	probe_rig_start(&rig, 0);
	cr_assert_eq(definitions(prefix), sites.n, "the living's are not removed");
	pyprofd_kill(&d);
	traced_until(&t, sites_are, &off, "the file's bytes");
	traced_until(&t, no_definitions, prefix, "no definitions of the daemon's");
	cr_assert_eq(definitions(prefix_of(getpid(), mine)), rig.plan.nsites);
	probe_rig_stop(&rig);
	traced_say(&t, "stop");
	traced_expect(&t, "checked ok");
	traced_finish(&t);
}

/*
 * An attach removes definitions that a crashed daemon has left: only those named like a daemon's
 * whose process no longer exists.
 */
Test(tracefs, definitions_of_the_dead_are_removed)
{
	char dead[64], other[64], text[256], alive[80], name[64];
	struct probe_rig rig;

	prefix_of(pid_of_nobody(), dead);
	snprintf(text, sizeof(text), "%s1/s0 /proc/self/exe:0x1000", dead);
	command(text);
	assert_ok(uprobe_event_name(name));
	snprintf(alive, sizeof(alive), "p:%s ", name);
	snprintf(text, sizeof(text), "%s/proc/self/exe:0x1000", alive);
	command(text);
	snprintf(other, sizeof(other), "p:other_%x/s0 ", (unsigned int)getpid());
	snprintf(text, sizeof(text), "%s/proc/self/exe:0x1000", other);
	command(text);
	cr_assert_eq(definitions(dead), 1);
	probe_rig_start(&rig, 0);
	cr_assert_eq(definitions(dead), 0);
	cr_assert_eq(definitions(alive), 1, "a living process's");
	cr_assert_eq(definitions(other), 1, "somebody else's");
	probe_rig_stop(&rig);
	snprintf(text, sizeof(text), "-:%s", name);
	command(text);
	snprintf(text, sizeof(text), "-:other_%x/s0", (unsigned int)getpid());
	command(text);
}

struct moment {
	const struct pyprofd *d;
	double cpu; /* seconds */
};

/* A daemon has used so much CPU time, or it traces: then it uses hardly any more. */
static bool is_reached(struct traced *t, void *ctx)
{
	const struct moment *m = ctx;

	return patience_cpu_s(m->d->pid) >= m->cpu || is_traced(t, (void *)m->d);
}

/*
 * The daemon ends at various moments of its attach, also while the self-test or the cost
 * measurement has an event of its own.
 */
Test(tracefs, nothing_remains_after_a_clean_end)
{
	char pid[16];
	struct traced t;
	struct pyprofd d;

	traced_start(&t, traced_newest().exe, "load.py", NULL);
	traced_expect(&t, "ready");
	for (int i = 0; i < 4; i++) {
		struct moment m = {.d = &d, .cpu = 0.02 * (1 << i)};

		pyprofd_start(&d, "--pid", pid_text(pid, t.pid), NULL);
		traced_until(&t, is_reached, &m, "a moment of the attach");
		pyprofd_shutdown(&d);
	}
	traced_until(&t, no_definitions, (void *)"p:pyprofd_", "no definitions");
	traced_say(&t, "stop");
	traced_expect(&t, "checked ok");
	traced_finish(&t);
}
