// SPDX-License-Identifier: BSD-2-Clause
/*
 * Targets in their own pid and mount namespaces, with another root directory, libc and Python than
 * the host's, as in containers; and the tracer inside a pid namespace. Counts are exact, ids are
 * those visible to the tracer, the self-test runs with the target's files, and nothing is written
 * to the target's root directory.
 */
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "harness/caps.h"
#include "harness/counts.h"
#include "harness/patience.h"
#include "harness/place.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "verify/scratch.h"

TestSuite(container);

static const struct interpreter debian_313 = {
	.exe = "/usr/bin/python3.13", .major = 3, .minor = 13};
static const struct interpreter debian_39 = {.exe = "/usr/bin/python3.9", .major = 3, .minor = 9};

static char *shared_dir(void)
{
	char *dir = temp_dir_new();

	assert_ok(chmod(dir, 0777));
	return dir;
}

static bool equal_in(const struct place *p, const struct interpreter *py, const char *dir)
{
	bool ok;

	traced_place(p);
	ok = counts_equal(py, "mixed", dir);
	traced_place(NULL);
	return ok;
}

Test(container, namespaces_of_their_own)
{
	const struct interpreter py = traced_newest();
	const struct place p = {0};
	char *dir = shared_dir();

	cr_assert(equal_in(&p, &py, dir));
	temp_dir_remove(dir);
	check_no_leaks();
}

/*
 * Finds files below the root directory that have changed since the test began. The kernel notes the
 * time of its last tick; a file that was fetched just now has at most the present time.
 */
static struct timespec began;
static char changed[1024];

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static void begin_now(void)
{
	struct timespec tick;

	assert_ok(clock_gettime(CLOCK_REALTIME, &began));
	do
		assert_ok(clock_gettime(CLOCK_REALTIME_COARSE, &tick));
	while (is_before(&tick, &began));
}

static int look(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)type;
	(void)ftw;
	if (!is_before(&st->st_ctim, &began))
		snprintf(changed, sizeof(changed), "%s", path);
	return 0;
}

static void check_unchanged(const char *root)
{
	changed[0] = '\0';
	cr_assert(nftw(root, look, 64, FTW_PHYS | FTW_MOUNT) == 0);
	cr_assert(!changed[0], "%s was changed", changed);
}

static void in_suite(const char *suite, const struct interpreter *py, bool user)
{
	_cleanup_free_ char *root = NULL;
	char *dir = shared_dir();
	struct place p = {.share = dir, .user = user};

	caps_require_bpf();
	root = place_suite(suite);
	p.root = root;
	begin_now();
	cr_assert(equal_in(&p, py, dir), "%s", suite);
	check_unchanged(root);
	temp_dir_remove(dir);
}

Test(container, another_root_and_user)
{
	in_suite("trixie", &debian_313, true);
	check_no_leaks();
}

Test(container, an_older_release)
{
	in_suite("bullseye", &debian_39, false);
	check_no_leaks();
}

static bool all_threads_called(struct traced *t, void *ctx)
{
	(void)ctx;
	return traced_status(t).threads >= 7;
}

/* The ids are the host's, as in /proc; the self-test ran with the container's own files. */
static void check_snapshot(const struct snapshot *s, pid_t pid)
{
	char path[64];

	for (uint32_t i = 0; i < s->nthreads; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)pid, s->threads[i].tid);
		cr_assert(!s->threads[i].alive || access(path, F_OK) == 0, "no thread %u",
			  s->threads[i].tid);
	}
	cr_assert_eq(s->targets[0].pid, (uint32_t)pid);
	cr_assert(strncmp(s->targets[0].python_version, "3.13.", 5) == 0);
	cr_assert(strncmp(s->targets[0].self_test, "passed", 6) == 0, "%s",
		  s->targets[0].self_test);
}

Test(container, ids_and_self_test)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_free_ char *root = NULL;
	char *cache = temp_dir_new();
	struct place p = {.user = true};
	struct traced t;

	caps_require_bpf();
	root = place_suite("trixie");
	p.root = root;
	traced_place(&p);
	traced_start(&t, debian_313.exe, "load.py", NULL);
	traced_expect(&t, "ready");
	/* An empty cache directory, so that no verdict is cached. */
	cr_assert(setenv("CACHE_DIRECTORY", cache, 1) == 0);
	traced_attach_verified(&t);
	traced_until(&t, all_threads_called, NULL, "seven threads");
	s = traced_snapshot(&t);
	check_snapshot(s, t.pid);
	traced_say(&t, "stop");
	traced_expect(&t, "checked ok");
	traced_finish(&t);
	traced_place(NULL);
	temp_dir_remove(cache);
	check_no_leaks();
}

/*
 * Attempts everything that a scratch process must not be able to do; prints the attempts that
 * succeeded, and undoes them.
 */
static const char attempts[] =
	"import posix as p\n"
	"def say(*words): p.write(1, (' '.join(map(str, words)) + '\\n').encode())\n"
	"def attempt(what, f, *args):\n"
	"    try:\n"
	"        f(*args)\n"
	"        say('could', what, *args)\n"
	"        return True\n"
	"    except OSError as e:\n"
	"        if e.errno == 39: say('could', what, 'if it were empty', *args)\n"
	"say('uid', p.getuid(), p.geteuid(), len(p.getgroups()))\n"
	"say('pyprof' in p.listdir('/'))\n"
	"for d in ('', '/tmp', '/run', '/var', '/dev', '/usr/lib', '/proc/self/cwd', '/dev/shm'):\n"
	"    f = d + '/pyprof-scratch'\n"
	"    if attempt('write', p.open, f, p.O_WRONLY | p.O_CREAT): p.unlink(f)\n"
	"    if attempt('make', p.mkdir, f): p.rmdir(f)\n"
	"attempt('write', p.open, '/usr/bin/python3.13', p.O_WRONLY | p.O_APPEND)\n"
	"attempt('write', p.open, '/etc/ld.so.conf', p.O_WRONLY | p.O_APPEND)\n"
	"attempt('remove', p.rmdir, '/usr')\n"
	"attempt('change', p.chmod, '/usr/bin', 0o755)\n"
	"attempt('fork', p.fork)\n"
	"attempt('spawn', p.posix_spawn, '/usr/bin/python3.13', ['x'], {})\n"
	"attempt('signal', p.kill, 1, 0)\n"
	"attempt('signal', p.kill, p.getpid(), 0)\n"
	"attempt('become another', p.setuid, 0 if p.getuid() else 1)\n"
	"attempt('trace', p.open, '/proc/1/mem', p.O_WRONLY)\n"
	"say('end')\n";

static void read_scratch(struct scratch *s, char line[256])
{
	cr_assert(scratch_line(s, line, 256) == 0, "the scratch process said no more");
}

static bool has_gone(void *ctx)
{
	return kill(*(const pid_t *)ctx, 0) < 0 && errno == ESRCH;
}

static void check_scratch(const struct target *target, bool user)
{
	const struct scratch_opts so = {.target = target, .script = attempts};
	struct diag diag = {0};
	struct scratch s;
	char line[256], want[64];
	pid_t pid;

	assert_diag_ok(scratch_start(&so, &s, &diag), &diag);
	read_scratch(&s, line);
	snprintf(want, sizeof(want), "uid %u %u 0", user ? PLACE_USER : 0, user ? PLACE_USER : 0);
	cr_assert_str_eq(line, want);
	read_scratch(&s, line);
	cr_assert_str_eq(line, "True", "it is not in the container's root");
	read_scratch(&s, line);
	cr_assert_str_eq(line, "end", "%s", line);
	pid = s.pid;
	scratch_end(&s);
	/* The scratch process ends with its keeper, and init or a subreaper reaps it. */
	patience_until(has_gone, &pid, "the end of the scratch process");
}

static void scratch_in(bool user)
{
	_cleanup_(target_freep) struct target *target = NULL;
	_cleanup_free_ char *root = NULL;
	struct place p = {.user = user};
	struct diag diag = {0};
	struct traced t;

	caps_require_bpf();
	root = place_suite("trixie");
	p.root = root;
	traced_place(&p);
	traced_start(&t, debian_313.exe, "load.py", NULL);
	traced_expect(&t, "ready");
	assert_diag_ok(target_open(t.pid, &target, &diag), &diag);
	check_scratch(target, user);
	traced_say(&t, "stop");
	traced_expect(&t, "checked ok");
	traced_finish(&t);
	traced_place(NULL);
}

Test(container, the_scratch_process_can_do_no_harm)
{
	scratch_in(false);
	check_no_leaks();
}

Test(container, the_scratch_process_of_another_user)
{
	scratch_in(true);
	check_no_leaks();
}

/* Runs in a pid namespace: first the target is in the same namespace, then in a nested one. */
static int inside(const struct interpreter *py, const char *dir)
{
	const struct place deeper = {0};

	if (!equal_in(NULL, py, dir))
		return 1;
	return equal_in(&deeper, py, dir) ? 0 : 2;
}

Test(container, ourselves_in_a_pid_namespace)
{
	const struct interpreter py = traced_newest();
	const struct place p = {0};
	char *dir = shared_dir();
	int status;
	pid_t pid = place_fork(&p);

	if (pid == 0)
		_exit(inside(&py, dir));
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_assert(status == 0, "wait status %#x", (unsigned int)status);
	temp_dir_remove(dir);
}
