// SPDX-License-Identifier: BSD-2-Clause
/*
 * The socket and its lock in a directory that other users can write to: they cannot prevent the
 * daemon from starting. A refused path leaves no files.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sockpath.h"
#include "harness/daemon.h"
#include "harness/test.h"
#include "pyprof/exit_codes.h"

#define STRANGER 65534

static struct pyprofd d;
static char lock[112];
static pid_t stranger;

static void setup(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
	pyprofd_init(&d);
	assert_ok(chmod(d.dir, 01777));
	snprintf(lock, sizeof(lock), "%s.lock", d.sock);
}

static void teardown(void)
{
	if (stranger > 0) {
		kill(stranger, SIGKILL);
		waitpid(stranger, NULL, 0);
	}
	stranger = 0;
	if (!d.dir[0])
		return;
	if (d.pid)
		pyprofd_shutdown(&d);
	else
		pyprofd_deinit(&d);
}

TestSuite(lockfile, .init = setup, .fini = teardown);

/* Start another user's process that runs prepare, reports success, and stays. */
static void as_stranger(bool (*prepare)(void))
{
	int ready[2];
	char c;

	assert_ok(pipe(ready));
	stranger = fork();
	if (stranger == 0) {
		if (setgid(STRANGER) < 0 || setuid(STRANGER) < 0)
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!prepare())
			_exit(1);
		(void)!write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	cr_assert(stranger > 0 && read(ready[0], &c, 1) == 1, "the other user failed");
	close(ready[0]);
}

static bool hold_lock(void)
{
	int fd = open(lock, O_RDWR | O_CREAT | O_EXCL, 0666);

	return fd >= 0 && fchmod(fd, 0666) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static bool make_fifo(void)
{
	return mkfifo(lock, 0666) == 0;
}

static bool make_link(void)
{
	return symlink("/etc/passwd", lock) == 0;
}

static bool make_directory(void)
{
	return mkdir(lock, 0777) == 0;
}

static void assert_starts(void)
{
	struct stat before, after;
	struct pyprofd second;

	assert_ok(lstat(lock, &before));
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	/* a second daemon is refused */
	second = d;
	second.pid = 0;
	pyprofd_file(&d, "stdout2", second.out, sizeof(second.out));
	pyprofd_file(&d, "stderr2", second.err, sizeof(second.err));
	pyprofd_fails(&second, PYP_EXIT_BUSY, "another daemon uses", NULL);
	assert_ok(lstat(lock, &after));
	cr_assert(before.st_ino == after.st_ino && after.st_uid == STRANGER);
}

Test(lockfile, anothers_lock)
{
	as_stranger(hold_lock);
	assert_starts();
}

Test(lockfile, anothers_fifo)
{
	as_stranger(make_fifo);
	assert_starts();
}

Test(lockfile, anothers_link)
{
	as_stranger(make_link);
	assert_starts();
}

Test(lockfile, anothers_directory)
{
	as_stranger(make_directory);
	assert_starts();
}

static bool serve(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un addr;

	return sockpath_addr(d.sock, &addr, NULL) == 0 &&
	       bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(fd, 1) == 0;
}

/* Only another path helps. The other user's socket is not removed. */
Test(lockfile, anothers_socket)
{
	struct stat st;

	as_stranger(serve);
	pyprofd_fails(&d, PYP_EXIT_BUSY, "another user (uid 65534) serves", NULL);
	assert_ok(lstat(d.sock, &st));
	unlink(d.sock);
}

/* ---- refused paths ---- */

static void assert_refused(const char *path, int status)
{
	char dir[128], old[96];
	struct stat st;

	snprintf(old, sizeof(old), "%s", d.sock);
	snprintf(d.sock, sizeof(d.sock), "%s", path);
	pyprofd_fails(&d, status, "", NULL);
	snprintf(d.sock, sizeof(d.sock), "%s", old);
	cr_assert(lstat(pyprofd_file(&d, "new", dir, sizeof(dir)), &st) < 0,
		  "'%s' was refused, but a directory created", path);
}

Test(lockfile, refused_paths_leave_no_directory)
{
	static const char *const ends[] = {"new/.", "new/..", "new/"};
	char path[128];

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		assert_refused(pyprofd_file(&d, ends[i], path, sizeof(path)), PYP_EXIT_USAGE);
	assert_refused(pyprofd_file(&d, "new/sub/s", path, sizeof(path)), PYP_EXIT_FAILURE);
}
