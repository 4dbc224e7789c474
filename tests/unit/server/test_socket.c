// SPDX-License-Identifier: BSD-2-Clause
/* server/socket: one daemon at a time, nobody else's files touched. */
#include "server/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sockpath.h"
#include "harness/test.h"

static char dir[64], path[96], lock[104];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/pyprof-socket-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(lock, sizeof(lock), "%s.lock", path);
}

static void teardown(void)
{
	unlink(path);
	unlink(lock);
	rmdir(dir);
}

TestSuite(socket, .init = setup, .fini = teardown);

static mode_t mode_of(const char *p)
{
	struct stat st;

	return lstat(p, &st) < 0 ? 0 : st.st_mode;
}

static bool connects(void)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;

	assert_ok(sockpath_addr(path, &addr, NULL));
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
}

Test(socket, private_and_gone_afterwards)
{
	struct control_socket *cs;

	umask(0);
	assert_ok(control_socket_open(path, (gid_t)-1, &cs, NULL));
	cr_assert(mode_of(path) == (S_IFSOCK | 0600), "%o", mode_of(path));
	cr_assert(mode_of(lock) == (S_IFREG | 0600));
	cr_assert(connects());
	cr_assert_str_eq(control_socket_path(cs), path);
	control_socket_free(cs);
	cr_assert(mode_of(path) == 0 && mode_of(lock) == 0);
	check_no_leaks();
}

/* With a group, the socket and a directory that is made for it are the group's, too. */
Test(socket, of_a_group)
{
	struct control_socket *cs;
	char sub[80], inner[112];
	struct stat st;

	if (geteuid() != 0)
		cr_skip_test("needs root");
	umask(0);
	snprintf(sub, sizeof(sub), "%s/run", dir);
	snprintf(inner, sizeof(inner), "%s/s", sub);
	assert_ok(control_socket_open(inner, 54321, &cs, NULL));
	assert_ok(lstat(inner, &st));
	cr_assert(st.st_mode == (S_IFSOCK | 0660) && st.st_gid == 54321 && st.st_uid == 0);
	assert_ok(lstat(sub, &st));
	cr_assert(st.st_mode == (S_IFDIR | 0750) && st.st_gid == 54321 && st.st_uid == 0);
	control_socket_free(cs);
	rmdir(sub);
	/* an existing directory is left alone */
	assert_ok(control_socket_open(path, 54321, &cs, NULL));
	cr_assert(mode_of(path) == (S_IFSOCK | 0660) && mode_of(dir) == (S_IFDIR | 0700));
	cr_assert(mode_of(lock) == (S_IFREG | 0600));
	control_socket_free(cs);
	check_no_leaks();
}

Test(socket, second_daemon)
{
	struct control_socket *cs, *second = NULL;
	struct diag diag = {0};

	assert_ok(control_socket_open(path, (gid_t)-1, &cs, NULL));
	assert_err(control_socket_open(path, (gid_t)-1, &second, &diag), -EADDRINUSE);
	cr_assert(diag.exit == PYP_EXIT_BUSY && !second);
	cr_assert(connects(), "the first must not suffer");
	control_socket_free(cs);
	assert_ok(control_socket_open(path, (gid_t)-1, &second, NULL));
	control_socket_free(second);
	check_no_leaks();
}

Test(socket, lock_was_removed)
{
	struct control_socket *cs, *second;
	struct diag diag = {0};

	assert_ok(control_socket_open(path, (gid_t)-1, &cs, NULL));
	unlink(lock);
	assert_err(control_socket_open(path, (gid_t)-1, &second, &diag), -EADDRINUSE);
	cr_assert(diag.exit == PYP_EXIT_BUSY);
	cr_assert(connects());
	control_socket_free(cs);
}

/* What a daemon leaves behind that was killed. */
Test(socket, stale_socket_is_replaced)
{
	struct control_socket *cs;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		_exit(control_socket_open(path, (gid_t)-1, &cs, NULL) == 0 ? 0 : 1);
	}
	cr_assert(waitpid(pid, &status, 0) == pid && status == 0);
	cr_assert(S_ISSOCK(mode_of(path)) && !connects());
	assert_ok(control_socket_open(path, (gid_t)-1, &cs, NULL));
	cr_assert(connects());
	control_socket_free(cs);
}

Test(socket, never_removes_what_is_no_socket)
{
	struct control_socket *cs;
	struct diag diag = {0};

	close(open(path, O_CREAT | O_WRONLY, 0644));
	assert_err(control_socket_open(path, (gid_t)-1, &cs, &diag), -ENOTSOCK);
	cr_assert(diag.exit == PYP_EXIT_FAILURE && diag.hint[0]);
	cr_assert(S_ISREG(mode_of(path)));
	unlink(path);
	assert_ok(symlink("elsewhere", path));
	assert_err(control_socket_open(path, (gid_t)-1, &cs, NULL), -ENOTSOCK);
	cr_assert(S_ISLNK(mode_of(path)));
}

Test(socket, leaves_another_ones_socket)
{
	struct control_socket *cs;
	struct sockaddr_un addr;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_ok(control_socket_open(path, (gid_t)-1, &cs, NULL));
	unlink(path);
	assert_ok(sockpath_addr(path, &addr, NULL));
	assert_ok(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	control_socket_free(cs);
	cr_assert(S_ISSOCK(mode_of(path)));
	close(fd);
}

Test(socket, lock_is_not_followed)
{
	struct control_socket *cs;
	struct diag diag = {0};

	assert_ok(symlink("victim", lock));
	assert_err(control_socket_open(path, (gid_t)-1, &cs, &diag), -ELOOP);
	cr_assert(diag.msg[0]);
}

Test(socket, makes_a_private_directory)
{
	struct control_socket *cs;
	char sub[80], inner[112];

	umask(0);
	snprintf(sub, sizeof(sub), "%s/run", dir);
	snprintf(inner, sizeof(inner), "%s/s", sub);
	assert_ok(control_socket_open(inner, (gid_t)-1, &cs, NULL));
	cr_assert(mode_of(sub) == (S_IFDIR | 0700));
	control_socket_free(cs);
	rmdir(sub);
	snprintf(inner, sizeof(inner), "%s/a/b/s", dir);
	assert_err(control_socket_open(inner, (gid_t)-1, &cs, NULL), -ENOENT);
}

/* A socket made by systemd or pyprofctl: its file is theirs. */
Test(socket, inherited)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct control_socket *cs;
	struct sockaddr_un addr;
	struct diag diag = {0};

	assert_ok(sockpath_addr(path, &addr, NULL));
	assert_ok(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	assert_err(control_socket_adopt(fd, &cs, &diag), -ENOTSOCK);
	cr_assert(diag.exit == PYP_EXIT_USAGE);
	assert_ok(listen(fd, 1));
	assert_ok(control_socket_adopt(fd, &cs, NULL));
	cr_assert_str_eq(control_socket_path(cs), path);
	cr_assert(fcntl(control_socket_fd(cs), F_GETFL) & O_NONBLOCK);
	control_socket_free(cs);
	cr_assert(S_ISSOCK(mode_of(path)) && !connects());
	assert_err(control_socket_adopt(0, &cs, NULL), -ENOTSOCK);
	check_no_leaks();
}

Test(socket, path_length)
{
	char longest[109];
	struct sockaddr_un addr;
	struct diag diag = {0};

	memset(longest, 'x', sizeof(longest));
	longest[108] = '\0';
	assert_err(sockpath_addr(longest, &addr, &diag), -ENAMETOOLONG);
	cr_assert(diag.exit == PYP_EXIT_USAGE && diag.hint[0]);
	longest[107] = '\0';
	assert_ok(sockpath_addr(longest, &addr, NULL));
	cr_assert(addr.sun_family == AF_UNIX);
	assert_err(sockpath_addr("", &addr, NULL), -EINVAL);
	assert_err(sockpath_addr("/tmp/", &addr, NULL), -EISDIR);
	assert_err(sockpath_addr("..", &addr, NULL), -EISDIR);
	assert_err(sockpath_addr("dir/.", &addr, NULL), -EISDIR);
	assert_ok(sockpath_addr("dir/...", &addr, NULL));
}

Test(socket, path_choice)
{
	unsetenv(SOCKPATH_ENV);
	cr_assert_str_eq(sockpath_choose(NULL), SOCKPATH_DEFAULT);
	setenv(SOCKPATH_ENV, "", 1);
	cr_assert_str_eq(sockpath_choose(NULL), SOCKPATH_DEFAULT);
	setenv(SOCKPATH_ENV, "/env", 1);
	cr_assert_str_eq(sockpath_choose(NULL), "/env");
	cr_assert_str_eq(sockpath_choose("/opt"), "/opt");
}
