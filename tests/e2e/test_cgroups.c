// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finding processes by --unit and --container in real control groups, arranged as systemd, Docker
 * and Kubernetes arrange theirs: the names come from the kernel's /proc/PID/cgroup.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/background.h"
#include "harness/caps.h"
#include "harness/daemon.h"
#include "harness/interpreters.h"
#include "harness/patience.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"

#define PROGRAMS 4

/*
 * Groups below the root; %: this test's pid, so that no other group has the name; #: the same as a
 * container's id.
 */
static const char *const groups[] = {
	"pyprof%.slice",
	"pyprof%.slice/web%.service",
	"pyprof%.slice/web%.service/workers",
	"pyprof%.slice/docker-#.scope",
	"kubepods-pyprof%.slice",
	"kubepods-pyprof%.slice/cri-containerd-#.scope",
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

enum { WEB, WORKER, DOCKER, KUBERNETES };
static const int group_of[PROGRAMS] = {1, 2, 3, 5};

static const char program[] = "import time\n"
			      "def work(): return sum(range(10))\n"
			      "print('ready', flush=True)\n"
			      "while True: work(); time.sleep(0.001)\n";

static struct pyprofd d;
static char *root; /* where the hierarchy of version 2 is mounted, for this test only */
static struct {
	pid_t pid;
	int out;
	char text[16];
} programs[PROGRAMS];
static char unit[32], container[65];

static void group_path(size_t i, const char *file, char out[512])
{
	FILE *f = fmemopen(out, 512, "w");

	cr_assert(f);
	fprintf(f, "%s/", root);
	for (const char *p = groups[i]; *p; p++) {
		if (*p == '%')
			fprintf(f, "%d", (int)getpid());
		else if (*p == '#')
			fputs(container, f);
		else
			fputc(*p, f);
	}
	fprintf(f, "/%s", file);
	cr_assert_eq(fclose(f), 0);
}

static void join(int group, pid_t pid)
{
	char path[512];
	FILE *f;

	group_path((size_t)group, "cgroup.procs", path);
	f = fopen(path, "we");
	cr_assert(f, "%s: %s", path, strerror(errno));
	fprintf(f, "%d\n", (int)pid);
	cr_assert_eq(fclose(f), 0, "%s: %s", path, strerror(errno));
}

/* The kernel keeps a group until its last process has been removed. */
static void remove_groups(void)
{
	char path[512];

	for (size_t i = GROUPS; i-- > 0;) {
		group_path(i, "", path);
		while (rmdir(path) < 0 && errno == EBUSY && !patience_over())
			patience_step();
		cr_expect(access(path, F_OK) < 0, "%s is still there", path);
	}
}

static void setup(void)
{
	struct interpreter it = traced_newest();
	char line[64], path[512];

	caps_require_bpf();
	root = temp_dir_new();
	assert_ok(unshare(CLONE_NEWNS));
	assert_ok(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	cr_assert_eq(mount("none", root, "cgroup2", 0, NULL), 0, "%s", strerror(errno));
	snprintf(unit, sizeof(unit), "web%d", (int)getpid());
	snprintf(container, sizeof(container), "%064d", (int)getpid());
	for (size_t i = 0; i < GROUPS; i++) {
		group_path(i, "", path);
		cr_assert_eq(mkdir(path, 0755), 0, "%s: %s", path, strerror(errno));
	}
	for (int i = 0; i < PROGRAMS; i++) {
		programs[i].pid = interpreter_start(&it, program, &programs[i].out);
		interpreter_line(programs[i].out, line, sizeof(line));
		pid_text(programs[i].text, programs[i].pid);
		join(group_of[i], programs[i].pid);
	}
	pyprofd_start(&d, "--no-verify", NULL);
}

static void teardown(void)
{
	pyprofd_end(&d);
	for (int i = 0; i < PROGRAMS; i++)
		if (programs[i].pid)
			interpreter_end(programs[i].pid, programs[i].out);
	if (!root)
		return;
	remove_groups();
	umount(root);
	temp_dir_remove(root);
}

TestSuite(cgroups, .init = setup, .fini = teardown);

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void check_place(const json_t *processes, int which, const char *in_unit,
			const char *runtime, const char *id)
{
	const json_t *process, *box;
	size_t i;

	json_array_foreach(processes, i, process)
	{
		if (json_integer_value(json_object_get(process, "pid")) != programs[which].pid)
			continue;
		box = json_object_get(process, "container");
		cr_assert_str_eq(text_of(process, "unit"), in_unit);
		cr_assert_str_eq(text_of(box, "runtime"), runtime);
		cr_assert_str_eq(text_of(box, "id"), id);
		return;
	}
	cr_assert_fail("program %d is not listed", which);
}

static void are_listed(void)
{
	char *text = ctl_ok(&d, "ps", "--json", NULL), service[64], docker[32];
	json_t *root_of = json_loads(text, 0, NULL), *list;

	list = json_object_get(root_of, "processes");
	snprintf(service, sizeof(service), "%s.service", unit);
	check_place(list, WEB, service, "", "");
	check_place(list, WORKER, service, "", "");
	check_place(list, DOCKER, "", "docker", container);
	check_place(list, KUBERNETES, "", "kubernetes", container);
	json_decref(root_of);
	free(text);
	text = ctl_ok(&d, "ps", NULL);
	snprintf(docker, sizeof(docker), "docker:%.12s", container);
	cr_assert(strstr(text, service) && strstr(text, docker), "%s", text);
	free(text);
}

/* The targets of the daemon are exactly these programs, a bit each. */
static void check_targets(unsigned int wanted)
{
	for (int i = 0; i < PROGRAMS; i++) {
		json_t *target = ctl_target_of(&d, programs[i].pid);

		cr_assert_eq(target != NULL, (wanted >> i & 1) != 0, "program %d", i);
		if (target)
			cr_assert_str_eq(text_of(target, "state"), "tracing");
		json_decref(target);
	}
}

static void attach_by_unit_and_container(void)
{
	struct ran r;

	/* two unrelated processes are in the unit */
	r = ctl(&d, "attach", "--unit", unit, NULL);
	cr_assert(r.status == 2 && strstr(r.err, "2 Python processes match --unit"), "%s", r.err);
	cr_assert(strstr(r.err, programs[WEB].text) && strstr(r.err, programs[WORKER].text));
	ran_free(&r);
	check_targets(0);
	/* one that is not there does not stop the others */
	r = ctl(&d, "attach", "--unit", unit, "--all", "--container", "no-such-container", NULL);
	cr_assert(r.status == 3 && strstr(r.err, "--container no-such-container"), "%s", r.err);
	ran_free(&r);
	check_targets(1u << WEB | 1u << WORKER);
	/* two containers have this id here */
	r = ctl(&d, "attach", "--container", container, "--all", "no-such-program", NULL);
	cr_assert(r.status == 3 && strstr(r.err, "no-such-program"), "%s", r.err);
	ran_free(&r);
	check_targets(1u << WEB | 1u << WORKER | 1u << DOCKER | 1u << KUBERNETES);
	for (int i = 0; i < PROGRAMS; i++)
		free(ctl_ok(&d, "detach", programs[i].text, NULL));
}

static void check_dumped(const char *text, int which, bool wanted)
{
	char line[64];

	snprintf(line, sizeof(line), "process %d: ", (int)programs[which].pid);
	cr_assert_eq(strstr(text, line) != NULL, wanted, "program %d: %s", which, text);
}

/* Returns whether the recorded process has called its function. */
static bool has_calls(void)
{
	json_t *target = ctl_target_of(&d, programs[WEB].pid);
	bool ret = json_integer_value(json_object_get(target, "events")) > 50;

	json_decref(target);
	return ret;
}

static void record(void)
{
	char path[256], *text;
	json_t *profile, *targets;
	pid_t child;

	pyprofd_file(&d, "web.json", path, sizeof(path));
	child = background_start(&d, "/dev/null", has_calls,
				 (const char *const[]){"record", "--unit", unit, "--yes", "-o",
						       path, NULL});
	cr_assert_eq(background_end(child, SIGINT), 0);
	text = file_text(path, NULL);
	profile = json_loads(text, 0, NULL);
	targets = json_object_get(profile, "targets");
	cr_assert_eq(json_array_size(targets), 1);
	cr_assert_eq(json_integer_value(json_object_get(json_array_get(targets, 0), "pid")),
		     programs[WEB].pid);
	cr_assert(strstr(text, "\"work\""), "%.2000s", text);
	json_decref(profile);
	free(text);
	unlink(path);
}

static void dump(void)
{
	char service[64];
	struct ran r;

	snprintf(service, sizeof(service), "%s.service", unit);
	r = ctl(&d, "dump", "--unit", service, "--container", container, "--all", NULL);
	cr_assert(r.status == 0 && !*r.err, "%s", r.err);
	for (int i = 0; i < PROGRAMS; i++)
		check_dumped(r.out, i, true);
	ran_free(&r);
	/* a process that has ended meanwhile, in an existing unit */
	interpreter_end(programs[WORKER].pid, programs[WORKER].out);
	programs[WORKER].pid = 0;
	r = ctl(&d, "dump", "--unit", unit, "--port", "1", NULL);
	cr_assert(r.status == 3 && strstr(r.err, "--port 1"), "%s", r.err);
	check_dumped(r.out, WEB, true);
	check_dumped(r.out, DOCKER, false);
	ran_free(&r);
}

Test(cgroups, of_all_kinds)
{
	are_listed();
	attach_by_unit_and_container();
	dump();
	record();
}
