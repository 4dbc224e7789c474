// SPDX-License-Identifier: BSD-2-Clause
/* Output files that are written completely or not at all: see outfile.h. */
#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/parse.h"
#include "base/safepath.h"

#define NAME_TRIES 16

struct outfile {
	FILE *f;
	char *path; /* as given, for messages */
	char *name; /* final name in dir; NULL: written in place */
	char *tmp;  /* temporary name in dir; NULL: none (O_TMPFILE), or committed */
	int dir;    /* O_PATH */
	int fd;	    /* the file; f uses a duplicate */
};

/* The resolved output path */
struct place {
	int own;    /* one of this process's own descriptors, or -1 */
	int dir;    /* otherwise: the directory (O_PATH), owned */
	char *name; /* file name in dir, owned */
	bool exists;
	struct stat st; /* valid if exists */
};

#define WRITE_HINT "choose another file with -o"

static void place_deinit(struct place *p)
{
	closep(&p->dir);
	free(p->name);
}

static int write_error(const char *path, int err, struct diag *diag)
{
	return diag_set(diag, -err, PYP_EXIT_FAILURE, WRITE_HINT, "cannot write '%s': %s", path,
			strerror(err));
}

/* ---- resolving the path ---- */

static int own_descriptor(const char *path)
{
	static const char *const dirs[] = {"/dev/fd/", "/proc/self/fd/"};
	uint64_t n;

	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (strncmp(path, dirs[i], strlen(dirs[i])) == 0 &&
		    parse_u64(path + strlen(dirs[i]), 0, INT_MAX, &n) == 0)
			return (int)n;
	return -1;
}

static int check_descriptor(const char *path, int fd, struct diag *diag)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return write_error(path, errno, diag);
	return (flags & O_ACCMODE) == O_RDONLY || flags & O_PATH ? write_error(path, EBADF, diag)
								 : 0;
}

/* Numbers from the kernel's admin-guide/devices.txt. Opening other devices can have side effects.
 */
static bool is_harmless_device(dev_t dev)
{
	unsigned int maj = major(dev), min = minor(dev);

	if (maj == 1) /* null, full */
		return min == 3 || min == 7;
	/* consoles and serial lines; tty, console; pseudo terminals */
	return maj == 4 || (maj == 5 && min <= 1) || (maj >= 136 && maj <= 143);
}

static const char *kind_of(mode_t mode)
{
	return S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static int check_kind(const char *path, const struct place *p, struct diag *diag)
{
	if (S_ISDIR(p->st.st_mode))
		return write_error(path, EISDIR, diag);
	if (S_ISREG(p->st.st_mode))
		return 0;
	if (S_ISCHR(p->st.st_mode) && is_harmless_device(p->st.st_rdev))
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_FAILURE,
			"use a regular file, or leave out -o for standard output",
			"cannot write '%s': it is %s", path, kind_of(p->st.st_mode));
}

static int look(const char *path, struct place *p, struct diag *diag)
{
	size_t n = strlen(path);
	bool directly;
	int r;

	if (!n || path[n - 1] == '/')
		return write_error(path, n ? EISDIR : ENOENT, diag);
	p->own = own_descriptor(path);
	if (p->own >= 0)
		return check_descriptor(path, p->own, diag);
	r = safepath_open_parent(path, &p->dir, &p->name, diag);
	if (r < 0)
		return write_error(path, -r, diag);
	p->exists = fstatat(p->dir, p->name, &p->st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!p->exists && errno != ENOENT)
		return write_error(path, errno, diag);
	r = p->exists ? check_kind(path, p, diag) : 0;
	if (r < 0)
		return r;
	directly = p->exists && !S_ISREG(p->st.st_mode);
	r = directly ? faccessat(p->dir, p->name, W_OK, AT_EACCESS)
		     : faccessat(p->dir, ".", W_OK | X_OK, AT_EACCESS);
	return r < 0 ? write_error(path, errno, diag) : 0;
}

int outfile_check(const char *path, struct diag *diag)
{
	_cleanup_(place_deinit) struct place p = {.own = -1, .dir = -1};

	return look(path, &p, diag);
}

/* ---- opening ---- */

static struct outfile *outfile_new(const char *path)
{
	_cleanup_(outfile_freep) struct outfile *of = calloc(1, sizeof(*of));

	if (!of)
		return NULL;
	of->dir = of->fd = -1;
	of->path = strdup(path);
	return of->path ? TAKE_PTR(of) : NULL;
}

/* The stream gets its own descriptor: closing it reports late errors, and fd can still be linked.
 */
static int open_stream(struct outfile *of, struct diag *diag)
{
	_cleanup_close_ int fd = fcntl(of->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return write_error(of->path, errno, diag);
	of->f = fdopen(fd, "w");
	if (!of->f)
		return write_error(of->path, errno, diag);
	(void)TAKE_FD(fd);
	return 0;
}

/* A new, unpredictable name. Owned; NULL if out of memory. */
static char *random_name(const char *stem)
{
	uint64_t v = 0;
	char *ret;

	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		v = (uint64_t)getpid(); /* O_EXCL protects, too */
	return asprintf(&ret, "%s.%016" PRIx64, stem, v) < 0 ? NULL : ret;
}

static int open_exclusive(struct outfile *of, const char *stem)
{
	for (int i = 0; i < NAME_TRIES; i++) {
		_cleanup_free_ char *name = random_name(stem);

		if (!name)
			return -ENOMEM;
		of->fd = openat(of->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				0600);
		if (of->fd >= 0) {
			of->tmp = TAKE_PTR(name);
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Use an exclusive temporary file where the file system does not support O_TMPFILE. */
static int open_temp(struct outfile *of, mode_t mode, struct diag *diag)
{
	int r = 0;

	of->fd = openat(of->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (of->fd < 0)
		r = open_exclusive(of, ".pyprof");
	if (r == 0 && fchmod(of->fd, mode) < 0)
		r = -errno;
	return r < 0 ? write_error(of->path, -r, diag) : open_stream(of, diag);
}

/* A terminal or null device. O_NONBLOCK, because another file may have replaced it since the check.
 */
static int open_device(struct outfile *of, const struct place *p, struct diag *diag)
{
	struct stat st;

	of->fd = openat(p->dir, p->name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (of->fd < 0 || fstat(of->fd, &st) < 0)
		return write_error(of->path, errno, diag);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != p->st.st_rdev)
		return write_error(of->path, ESTALE, diag);
	if (fcntl(of->fd, F_SETFL, O_WRONLY) < 0)
		return write_error(of->path, errno, diag);
	return open_stream(of, diag);
}

static mode_t mode_for(const struct place *p)
{
	return p->exists && p->st.st_uid == geteuid() ? p->st.st_mode & 0777 : 0600;
}

int outfile_open(const char *path, struct outfile **ret, struct diag *diag)
{
	_cleanup_(place_deinit) struct place p = {.own = -1, .dir = -1};
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	int r;

	r = look(path, &p, diag);
	if (r < 0)
		return r;
	of = outfile_new(path);
	if (!of)
		return -ENOMEM;
	if (p.own >= 0) {
		of->fd = fcntl(p.own, F_DUPFD_CLOEXEC, 0);
		r = of->fd < 0 ? write_error(path, errno, diag) : open_stream(of, diag);
	} else if (p.exists && !S_ISREG(p.st.st_mode)) {
		r = open_device(of, &p, diag);
	} else {
		of->dir = TAKE_FD(p.dir);
		of->name = TAKE_PTR(p.name);
		r = open_temp(of, mode_for(&p), diag);
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(of);
	return 0;
}

int outfile_open_fallback(const char *stem, struct outfile **ret, struct diag *diag)
{
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	const char *env = secure_getenv("TMPDIR"), *dir = env && *env ? env : "/tmp";
	int r;

	of = outfile_new(dir);
	if (!of)
		return -ENOMEM;
	of->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = of->dir < 0 ? -errno : open_exclusive(of, stem);
	if (r < 0)
		return write_error(of->path, -r, diag);
	/* the temporary name is also the final one */
	of->name = strdup(of->tmp);
	free(TAKE_PTR(of->path));
	if (!of->name || asprintf(&of->path, "%s/%s", dir, of->name) < 0) {
		of->path = NULL;
		return -ENOMEM;
	}
	r = open_stream(of, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(of);
	return 0;
}

FILE *outfile_stream(struct outfile *of)
{
	return of->f;
}

const char *outfile_path(const struct outfile *of)
{
	return of->path;
}

/* ---- committing ---- */

/* Give the unnamed file a name. Never replaces an existing file. */
static int link_as(const struct outfile *of, const char *name)
{
	char self[40];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", of->fd);
	if (linkat(AT_FDCWD, self, of->dir, name, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	/* Without /proc. Needs CAP_DAC_READ_SEARCH before Linux 6.10. */
	if (errno == ENOENT && linkat(of->fd, "", of->dir, name, AT_EMPTY_PATH) == 0)
		return 0;
	return -errno;
}

/* linkat(2) cannot replace a file, so link under a temporary name; the caller renames it. */
static int link_temp(struct outfile *of)
{
	int r = -EEXIST;

	for (int i = 0; i < NAME_TRIES && r == -EEXIST; i++) {
		_cleanup_free_ char *name = random_name(".pyprof");

		if (!name)
			return -ENOMEM;
		r = link_as(of, name);
		if (r == 0)
			of->tmp = TAKE_PTR(name);
	}
	return r;
}

static int put_into_place(struct outfile *of)
{
	int r = 0;

	if (!of->name)
		return 0;
	if (!of->tmp) {
		r = link_as(of, of->name);
		if (r != -EEXIST)
			return r;
		r = link_temp(of);
	}
	if (r == 0 && strcmp(of->tmp, of->name) != 0 &&
	    renameat(of->dir, of->tmp, of->dir, of->name) < 0)
		r = -errno;
	if (r == 0)
		free(TAKE_PTR(of->tmp));
	return r;
}

int outfile_commit(struct outfile *of, struct diag *diag)
{
	FILE *f = TAKE_PTR(of->f);
	int err = 0;

	errno = EIO; /* ferror() does not give the error */
	if (ferror(f) || fflush(f) != 0)
		err = errno;
	if (fclose(f) != 0 && !err)
		err = errno;
	if (!err)
		err = -put_into_place(of);
	return err ? write_error(of->path, err, diag) : 0;
}

void outfile_free(struct outfile *of)
{
	if (!of)
		return;
	fclosep(&of->f);
	if (of->tmp)
		unlinkat(of->dir, of->tmp, 0);
	closep(&of->fd);
	closep(&of->dir);
	free(of->tmp);
	free(of->name);
	free(of->path);
	free(of);
}
