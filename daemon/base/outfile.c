// SPDX-License-Identifier: BSD-2-Clause
/* Files that are there whole or not at all: see outfile.h. */
#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

struct outfile {
	FILE *f;
	char *path; /* where it will be */
	char *tmp;  /* where it is until then; NULL: written directly, or committed */
};

#define WRITE_HINT "choose another file with -o"

static int write_error(const char *path, int err, struct diag *diag)
{
	return diag_set(diag, -err, PYP_EXIT_FAILURE, WRITE_HINT, "cannot write '%s': %s", path,
			strerror(err));
}

/* The file that path means, symbolic links followed, also when it does not exist yet. Owned. */
static char *resolve(const char *path)
{
	char *real = realpath(path, NULL);

	return real || errno != ENOENT ? real : strdup(path);
}

static int check_directory(const char *path, struct diag *diag)
{
	_cleanup_free_ char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	if (access(dirname(copy), W_OK | X_OK) < 0)
		return write_error(path, errno, diag);
	return 0;
}

int outfile_check(const char *path, struct diag *diag)
{
	_cleanup_free_ char *real = resolve(path);
	size_t n = strlen(path);
	struct stat st;

	if (!n || path[n - 1] == '/')
		return write_error(path, n ? EISDIR : ENOENT, diag);
	if (!real)
		return write_error(path, errno, diag);
	if (stat(real, &st) < 0)
		return errno == ENOENT ? check_directory(real, diag)
				       : write_error(path, errno, diag);
	if (S_ISDIR(st.st_mode))
		return write_error(path, EISDIR, diag);
	if (S_ISREG(st.st_mode))
		return check_directory(real, diag);
	return access(real, W_OK) < 0 ? write_error(path, errno, diag) : 0;
}

/* The permissions that creat(2) would give; the process has one thread. */
static mode_t creation_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static int open_temp(struct outfile *of, mode_t mode, struct diag *diag)
{
	_cleanup_close_ int fd = -1;

	fd = mkostemp(of->tmp, O_CLOEXEC);
	if (fd < 0) {
		int err = errno;

		/* not ours to unlink */
		free(TAKE_PTR(of->tmp));
		return write_error(of->path, err, diag);
	}
	if (fchmod(fd, mode) < 0)
		return write_error(of->path, errno, diag);
	of->f = fdopen(fd, "w");
	if (!of->f)
		return write_error(of->path, errno, diag);
	(void)TAKE_FD(fd);
	return 0;
}

static int open_beside(struct outfile *of, mode_t mode, struct diag *diag)
{
	if (asprintf(&of->tmp, "%s.XXXXXX", of->path) < 0) {
		of->tmp = NULL;
		return -ENOMEM;
	}
	return open_temp(of, mode, diag);
}

static int open_directly(struct outfile *of, struct diag *diag)
{
	of->f = fopen(of->path, "we");
	return of->f ? 0 : write_error(of->path, errno, diag);
}

int outfile_open(const char *path, struct outfile **ret, struct diag *diag)
{
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	struct stat st = {.st_mode = S_IFREG | creation_mode()};
	int r;

	r = outfile_check(path, diag);
	if (r < 0)
		return r;
	of = calloc(1, sizeof(*of));
	if (!of)
		return -ENOMEM;
	of->path = resolve(path);
	if (!of->path)
		return write_error(path, errno, diag);
	if (stat(of->path, &st) < 0 && errno != ENOENT)
		return write_error(path, errno, diag);
	if (S_ISREG(st.st_mode))
		r = open_beside(of, st.st_mode & 0777, diag);
	else
		r = open_directly(of, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(of);
	return 0;
}

int outfile_open_fallback(const char *stem, struct outfile **ret, struct diag *diag)
{
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	const char *dir = secure_getenv("TMPDIR");
	int r;

	of = calloc(1, sizeof(*of));
	if (!of)
		return -ENOMEM;
	if (asprintf(&of->tmp, "%s/%s.XXXXXX", dir && *dir ? dir : "/tmp", stem) < 0) {
		of->tmp = NULL;
		return -ENOMEM;
	}
	of->path = strdup(of->tmp);
	if (!of->path)
		return -ENOMEM;
	r = open_temp(of, 0600, diag);
	if (r < 0)
		return r;
	/* the temporary name is the final one */
	memcpy(of->path, of->tmp, strlen(of->tmp) + 1);
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

int outfile_commit(struct outfile *of, struct diag *diag)
{
	FILE *f = TAKE_PTR(of->f);
	int err = 0;

	errno = EIO; /* ferror() does not say which error it was */
	if (ferror(f) || fflush(f) != 0)
		err = errno;
	if (fclose(f) != 0 && !err)
		err = errno;
	if (!err && of->tmp && strcmp(of->tmp, of->path) != 0 && rename(of->tmp, of->path) < 0)
		err = errno;
	if (err)
		return write_error(of->path, err, diag);
	free(TAKE_PTR(of->tmp));
	return 0;
}

void outfile_free(struct outfile *of)
{
	if (!of)
		return;
	fclosep(&of->f);
	if (of->tmp)
		unlink(of->tmp);
	free(of->tmp);
	free(of->path);
	free(of);
}
