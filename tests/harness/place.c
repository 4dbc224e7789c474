// SPDX-License-Identifier: BSD-2-Clause
/* Containers: see place.h. */
#include "harness/place.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

/* For the child: report a failure on standard error and exit. */
static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(125);
}

static const char *below(const char *root, const char *path, char out[1024])
{
	snprintf(out, 1024, "%s%s", root, path);
	return out;
}

/* Mount the required files of the host on a private /tmp. */
static void fill_tmp(const struct place *p)
{
	char path[1024], source[512];

	must(mount("tmpfs", below(p->root, "/tmp", path), "tmpfs", 0, "mode=755") == 0, path);
	must(mkdir(below(p->root, PLACE_TARGETS, path), 0755) == 0, path);
	must(mount(traced_path("tests", "targets", source, sizeof(source)), path, NULL, MS_BIND,
		   NULL) == 0,
	     path);
	if (!p->share)
		return;
	must(mkdir(below(p->root, p->share, path), 0755) == 0, path);
	must(mount(p->share, path, NULL, MS_BIND, NULL) == 0, path);
}

/* Pivot to the new root: the old root is mounted over the new one, and then unmounted. */
static void change_root(const struct place *p)
{
	must(mount(p->root, p->root, NULL, MS_BIND | MS_REC, NULL) == 0, "bind the root");
	fill_tmp(p);
	must(chdir(p->root) == 0 && syscall(SYS_pivot_root, ".", ".") == 0, "pivot_root");
	must(umount2(".", MNT_DETACH) == 0 && chdir("/") == 0, "the old root");
}

struct rendezvous {
	int there[2], mapped[2];
};

static void become_user(const struct rendezvous *r)
{
	char c = 0;

	must(unshare(CLONE_NEWUSER) == 0, "user namespace");
	must(write(r->there[1], &c, 1) == 1 && read(r->mapped[0], &c, 1) == 1, "the user's ids");
	must(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0, "become the user");
}

static void enter(const struct place *p, const struct rendezvous *r)
{
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
	if (p->root)
		change_root(p);
	must(mount("proc", "/proc", "proc", 0, NULL) == 0, "/proc");
	if (p->user)
		become_user(r);
}

static void map_ids(pid_t pid, const char *file)
{
	char path[64], text[64];
	int fd, n = snprintf(text, sizeof(text), "0 %u 1000", PLACE_USER);

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert(fd >= 0 && write(fd, text, (size_t)n) == n, "%s", path);
	close(fd);
}

static void map_user(pid_t pid, const struct rendezvous *r)
{
	char c;

	cr_assert(read(r->there[0], &c, 1) == 1, "the place could not be set up");
	map_ids(pid, "uid_map");
	map_ids(pid, "gid_map");
	cr_assert(write(r->mapped[1], &c, 1) == 1);
}

pid_t place_fork(const struct place *p)
{
	struct rendezvous r;
	pid_t pid;

	if (!p)
		return fork();
	assert_ok(pipe2(r.there, O_CLOEXEC));
	assert_ok(pipe2(r.mapped, O_CLOEXEC));
	pid = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_NEWPID | CLONE_NEWNS, 0, 0, 0, 0);
	cr_assert(pid >= 0, "no namespaces");
	if (pid == 0)
		enter(p, &r);
	else
		close(r.there[1]);
	if (pid && p->user)
		map_user(pid, &r);
	if (pid == 0)
		close(r.there[1]);
	close(r.there[0]);
	close(r.mapped[0]);
	close(r.mapped[1]);
	return pid;
}

char *place_suite(const char *suite)
{
	char script[512];
	const char *const argv[] = {
		traced_path("tests", "fetch-interpreters.sh", script, sizeof(script)), suite, NULL};
	_cleanup_free_ char *said = NULL;
	char *end;
	int status;

	said = tool_try(argv, &status);
	if (status == 77)
		cr_skip_test("needs Debian's %s: %s", suite, said);
	cr_assert(status == 0, "%s", said);
	/* The last line is ROOT/pyprof/python3.X. */
	end = strstr(said, "/pyprof/");
	cr_assert(end, "%s", said);
	for (char *next = end; next; next = strstr(next + 1, "/pyprof/"))
		end = next;
	*end = '\0';
	end = strrchr(said, '\n');
	return strdup(end ? end + 1 : said);
}
