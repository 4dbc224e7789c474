/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A FUSE file system with one file, served by a process of its own over /dev/fuse, mounted as a
 * user's. When told to, its server takes requests and never answers them: whoever waits for it then
 * cannot be killed before fuse_end. It ends by itself after FUSE_SECONDS, or with the test.
 */
#ifndef PYPROF_TESTS_HARNESS_FUSE_H
#define PYPROF_TESTS_HARNESS_FUSE_H

#include <sys/types.h>

#define FUSE_SECONDS 50

struct fuse_fs {
	char dir[64], file[80];
	pid_t server;
	volatile int *silent;  /* shared with the server */
	volatile int *flushes; /* likewise: those that are not answered */
};

/* content: the file is a copy of it, to be executed; NULL: a MiB, of which no byte is ever read.
 * False: not possible here. */
_Bool fuse_start(struct fuse_fs *fs, const char *content);
/* From now on no request is answered. */
void fuse_silence(struct fuse_fs *fs);
/* Does anybody wait for it in a close? */
_Bool fuse_holds_a_close(const struct fuse_fs *fs);
/* The server ends, whoever waits for it goes on, the mount goes. */
void fuse_end(struct fuse_fs *fs);

#endif
