// SPDX-License-Identifier: BSD-2-Clause
/* The control socket's file: see socket.h. */
#include "server/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/safepath.h"
#include "base/sockpath.h"

#define BACKLOG	   64
#define LOCK_TRIES 8
#define NO_GROUP   ((gid_t)-1)

struct control_socket {
	struct sockaddr_un addr;
	char *lock_path;   /* NULL: no lock */
	char *created_dir; /* directory created for the socket; removed on failure */
	gid_t group;	   /* may connect, too; -1: none */
	int fd, lock_fd;
	dev_t dev; /* identity of our socket file */
	ino_t ino;
	bool bound;
};

#define PATH_HINT "choose another path with --socket"

static int busy(const char *path, struct diag *diag)
{
	return diag_set(diag, -EADDRINUSE, PYP_EXIT_BUSY,
			"use that daemon through pyprofctl, or " PATH_HINT,
			"another daemon uses the socket '%s'", path);
}

/* Like diag_errno(), with a hint to use another path. */
static int file_error(struct diag *diag, int err, const char *what, const char *path)
{
	bool permission = err == EACCES || err == EPERM;

	return diag_set(diag, -err, permission ? PYP_EXIT_PERMISSION : PYP_EXIT_FAILURE,
			permission ? "run as root, or " PATH_HINT : PATH_HINT, "%s '%s': %s", what,
			path, strerror(err));
}

/* Give our file to the group, with this mode. Another user may have replaced it in the meantime: by
 * nothing of ours, and what is not ours is not changed. */
static int give(const struct control_socket *cs, const char *path, mode_t type, mode_t mode,
		struct diag *diag)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char link[32];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return file_error(diag, errno, "cannot inspect", path);
	if ((st.st_mode & S_IFMT) != type || st.st_uid != geteuid())
		return file_error(diag, EPERM, "cannot set the group of", path);
	/* chmod(2) does not take such a descriptor, but its link in /proc */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fchownat(fd, "", (uid_t)-1, cs->group, AT_EMPTY_PATH) < 0 || chmod(link, mode) < 0)
		return file_error(diag, errno, "cannot set the group of", path);
	return 0;
}

/* ---- the directory ---- */

static int make_directory(struct control_socket *cs, const char *dir, struct diag *diag)
{
	if (mkdir(dir, 0700) == 0) {
		cs->created_dir = strdup(dir);
		if (!cs->created_dir)
			return -ENOMEM;
		return cs->group == NO_GROUP ? 0 : give(cs, dir, S_IFDIR, 0750, diag);
	}
	return errno == EEXIST
		       ? 0
		       : file_error(diag, errno, "cannot create the socket's directory", dir);
}

static bool is_private(const char *dir)
{
	struct stat st;

	return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && safepath_is_private(&st);
}

/* FNV-1a, 64 bits: for a name, not for security */
static uint64_t hash_of(const char *s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return h;
}

/* A directory of this user for locks, or NULL. */
static const char *lock_directory(void)
{
	const char *dir = geteuid() == 0 ? SOCKPATH_DEFAULT_DIR : secure_getenv("XDG_RUNTIME_DIR");

	if (!dir || *dir != '/')
		return NULL;
	if (geteuid() == 0)
		(void)mkdir(dir, 0700);
	return is_private(dir) && faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0 ? dir
											 : NULL;
}

/*
 * Choose the lock's path. In a directory that others can write to, they could create and hold the
 * lock. Then it is in a directory of our own, with a name derived from the socket's path. Without
 * such a directory there is no lock, and of two daemons that start at the same moment, one may
 * replace the other's socket.
 */
static int choose_lock(struct control_socket *cs, const char *dir)
{
	_cleanup_free_ char *real = NULL, *full = NULL;
	const char *path = cs->addr.sun_path, *slash = strrchr(path, '/'), *locks;
	int n;

	if (is_private(dir)) {
		n = asprintf(&cs->lock_path, "%s.lock", path);
	} else {
		locks = lock_directory();
		real = realpath(dir, NULL);
		if (!locks || !real)
			return 0;
		if (asprintf(&full, "%s/%s", real, slash ? slash + 1 : path) < 0) {
			full = NULL;
			return -ENOMEM;
		}
		n = asprintf(&cs->lock_path, "%s/%016" PRIx64 ".lock", locks, hash_of(full));
	}
	if (n < 0)
		cs->lock_path = NULL;
	return n < 0 ? -ENOMEM : 0;
}

/* ---- the lock ---- */

static int open_lock(struct control_socket *cs, struct diag *diag)
{
	_cleanup_close_ int fd =
		open(cs->lock_path,
		     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return file_error(diag, errno, "cannot open the lock", cs->lock_path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return diag_set(diag, -EPERM, PYP_EXIT_FAILURE, "remove it, or " PATH_HINT,
				"the lock '%s' is not a regular file of this user", cs->lock_path);
	return TAKE_FD(fd);
}

/* Is the file at path the one opened as fd? Its previous owner may have removed it. */
static bool is_at(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int take_lock(struct control_socket *cs, struct diag *diag)
{
	for (int i = 0; i < LOCK_TRIES && cs->lock_path; i++) {
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
	return cs->lock_path ? busy(cs->addr.sun_path, diag) : 0;
}

/* ---- the socket ---- */

/* Report the server that answered. Another user's server is not a daemon of ours, and is not
 * removed. */
static int answered(int fd, const char *path, struct diag *diag)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.uid == (uid_t)-1 ||
	    peer.uid == 0 || peer.uid == geteuid())
		return busy(path, diag);
	return diag_set(diag, -EADDRINUSE, PYP_EXIT_BUSY, PATH_HINT,
			"another user (uid %u) serves the socket '%s'", peer.uid, path);
}

/* Check that no server answers, because the lock of a running daemon may have been removed. */
static int check_unanswered(const struct sockaddr_un *addr, struct diag *diag)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return 0;
	/* EAGAIN: the backlog is full */
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 && errno != EAGAIN)
		return 0;
	return answered(fd, addr->sun_path, diag);
}

static int remove_stale(const struct sockaddr_un *addr, struct diag *diag)
{
	struct stat st;
	int r;

	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT ? 0
				       : file_error(diag, errno, "cannot inspect", addr->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return diag_set(diag, -ENOTSOCK, PYP_EXIT_FAILURE, "remove it, or " PATH_HINT,
				"'%s' exists and is not a socket", addr->sun_path);
	r = check_unanswered(addr, diag);
	if (r < 0)
		return r;
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
	/* On Linux the file gets the socket's mode (unix_bind_bsd), so it is never accessible to
	 * others. */
	if (fchmod(cs->fd, 0600) < 0 || bind(cs->fd, addr, sizeof(cs->addr)) < 0)
		return file_error(diag, errno, "cannot create the socket", cs->addr.sun_path);
	cs->bound = true;
	if (lstat(cs->addr.sun_path, &st) < 0 || listen(cs->fd, BACKLOG) < 0)
		return diag_errno(diag, errno, "cannot listen on '%s'", cs->addr.sun_path);
	cs->dev = st.st_dev;
	cs->ino = st.st_ino;
	return cs->group == NO_GROUP ? 0 : give(cs, cs->addr.sun_path, S_IFSOCK, 0660, diag);
}

static struct control_socket *control_socket_new(gid_t group)
{
	struct control_socket *cs = calloc(1, sizeof(*cs));

	if (!cs)
		return NULL;
	cs->fd = cs->lock_fd = -1;
	cs->group = group;
	return cs;
}

int control_socket_open(const char *path, gid_t group, struct control_socket **ret,
			struct diag *diag)
{
	_cleanup_(control_socket_freep) struct control_socket *cs = control_socket_new(group);
	_cleanup_free_ char *copy = strdup(path);
	const char *dir;
	int r;

	if (!cs || !copy)
		return -ENOMEM;
	r = sockpath_addr(path, &cs->addr, diag);
	if (r < 0)
		return r;
	dir = dirname(copy);
	r = make_directory(cs, dir, diag);
	if (r == 0)
		r = choose_lock(cs, dir);
	if (r == 0)
		r = take_lock(cs, diag);
	if (r == 0)
		r = remove_stale(&cs->addr, diag);
	if (r == 0)
		r = bind_and_listen(cs, diag);
	if (r < 0)
		return r;
	free(TAKE_PTR(cs->created_dir)); /* keep the directory */
	*ret = TAKE_PTR(cs);
	return 0;
}

int control_socket_adopt(int fd, struct control_socket **ret, struct diag *diag)
{
	_cleanup_(control_socket_freep) struct control_socket *cs = control_socket_new(NO_GROUP);
	socklen_t n = sizeof(cs->addr);
	int flags, listens = 0;
	socklen_t size = sizeof(listens);

	if (!cs)
		return -ENOMEM;
	if (getsockname(fd, (struct sockaddr *)&cs->addr, &n) < 0 ||
	    cs->addr.sun_family != AF_UNIX ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 || !listens)
		return diag_set(diag, -ENOTSOCK, PYP_EXIT_USAGE, "pass one Unix stream socket",
				"descriptor %d, from LISTEN_FDS, is not a listening Unix socket",
				fd);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return diag_errno(diag, errno, "cannot use the inherited socket");
	cs->fd = fd;
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
	/* removed while locked; take_lock() detects a removed file */
	if (cs->lock_fd >= 0)
		unlink(cs->lock_path);
	if (cs->created_dir)
		rmdir(cs->created_dir);
	closep(&cs->fd);
	closep(&cs->lock_fd);
	free(cs->created_dir);
	free(cs->lock_path);
	free(cs);
}
