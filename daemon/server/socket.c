// SPDX-License-Identifier: BSD-2-Clause
/* The control socket in the file system: see socket.h. */
#include "server/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/sockpath.h"

#define BACKLOG	   64
#define LOCK_TRIES 8

struct control_socket {
	struct sockaddr_un addr;
	char lock_path[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];
	int fd, lock_fd;
	dev_t dev; /* which file is ours */
	ino_t ino;
	bool bound;
};

#define PATH_HINT "choose another path with --socket"

static int busy(const char *path, struct diag *diag)
{
	return diag_set(diag, -EADDRINUSE, PYP_EXIT_BUSY,
			"use that one through pyprofctl, or " PATH_HINT,
			"a daemon already holds the socket '%s'", path);
}

/* As diag_errno, but what helps against a missing permission is another path. */
static int file_error(struct diag *diag, int err, const char *what, const char *path)
{
	bool permission = err == EACCES || err == EPERM;

	return diag_set(diag, -err, permission ? PYP_EXIT_PERMISSION : PYP_EXIT_FAILURE,
			permission ? "run as root, or " PATH_HINT : PATH_HINT, "%s '%s': %s", what,
			path, strerror(err));
}

static int make_directory(const char *path, struct diag *diag)
{
	_cleanup_free_ char *copy = strdup(path);
	const char *dir;

	if (!copy)
		return -ENOMEM;
	dir = dirname(copy);
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return file_error(diag, errno, "cannot create the socket's directory", dir);
	return 0;
}

static int open_lock(struct control_socket *cs, struct diag *diag)
{
	int fd = open(cs->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);

	if (fd < 0)
		return file_error(diag, errno, "cannot open the lock", cs->lock_path);
	return fd;
}

/* Is what lies at path the file that fd has open? The one before us may have removed it. */
static bool is_at(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int take_lock(struct control_socket *cs, struct diag *diag)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		_cleanup_close_ int fd = open_lock(cs, diag);

		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK
				       ? busy(cs->addr.sun_path, diag)
				       : diag_errno(diag, errno, "cannot lock '%s'", cs->lock_path);
		if (is_at(fd, cs->lock_path)) {
			cs->lock_fd = TAKE_FD(fd);
			return 0;
		}
	}
	return busy(cs->addr.sun_path, diag);
}

/* Somebody may have removed the lock of a daemon that still runs. */
static bool is_answered(const struct sockaddr_un *addr)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	/* EAGAIN: its backlog is full */
	return connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN;
}

static int remove_stale(const struct sockaddr_un *addr, struct diag *diag)
{
	struct stat st;

	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT ? 0
				       : file_error(diag, errno, "cannot look at", addr->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return diag_set(diag, -ENOTSOCK, PYP_EXIT_FAILURE,
				"remove it yourself, or " PATH_HINT,
				"'%s' exists and is not a socket", addr->sun_path);
	if (is_answered(addr))
		return busy(addr->sun_path, diag);
	if (unlink(addr->sun_path) < 0 && errno != ENOENT)
		return file_error(diag, errno, "cannot remove the stale socket", addr->sun_path);
	return 0;
}

static int bind_and_listen(struct control_socket *cs, struct diag *diag)
{
	const struct sockaddr *addr = (const struct sockaddr *)&cs->addr;
	struct stat st;

	cs->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (cs->fd < 0)
		return diag_errno(diag, errno, "cannot create a socket");
	/* Linux gives the file the mode of the socket (unix_bind_bsd), so it is never open to more.
	 */
	if (fchmod(cs->fd, 0600) < 0 || bind(cs->fd, addr, sizeof(cs->addr)) < 0)
		return file_error(diag, errno, "cannot create the socket", cs->addr.sun_path);
	cs->bound = true;
	if (lstat(cs->addr.sun_path, &st) < 0 || listen(cs->fd, BACKLOG) < 0)
		return diag_errno(diag, errno, "cannot listen on '%s'", cs->addr.sun_path);
	cs->dev = st.st_dev;
	cs->ino = st.st_ino;
	return 0;
}

int control_socket_open(const char *path, struct control_socket **ret, struct diag *diag)
{
	_cleanup_(control_socket_freep) struct control_socket *cs = NULL;
	int r;

	cs = calloc(1, sizeof(*cs));
	if (!cs)
		return -ENOMEM;
	cs->fd = cs->lock_fd = -1;
	r = sockpath_addr(path, &cs->addr, diag);
	if (r < 0)
		return r;
	snprintf(cs->lock_path, sizeof(cs->lock_path), "%s.lock", path);
	r = make_directory(path, diag);
	if (r == 0)
		r = take_lock(cs, diag);
	if (r == 0)
		r = remove_stale(&cs->addr, diag);
	if (r == 0)
		r = bind_and_listen(cs, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(cs);
	return 0;
}

int control_socket_fd(const struct control_socket *cs)
{
	return cs->fd;
}

const char *control_socket_path(const struct control_socket *cs)
{
	return cs->addr.sun_path;
}

static void remove_own(const struct control_socket *cs)
{
	struct stat st;

	if (cs->bound && lstat(cs->addr.sun_path, &st) == 0 && st.st_dev == cs->dev &&
	    st.st_ino == cs->ino)
		unlink(cs->addr.sun_path);
}

void control_socket_free(struct control_socket *cs)
{
	if (!cs)
		return;
	remove_own(cs);
	/* while we hold the lock nobody else does, and take_lock() notices a file that has gone */
	if (cs->lock_fd >= 0)
		unlink(cs->lock_path);
	closep(&cs->fd);
	closep(&cs->lock_fd);
	free(cs);
}
