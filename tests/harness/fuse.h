/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A FUSE file system with one file, served by its own process over /dev/fuse, and mounted as a user
 * would. After fuse_silence(), its server takes requests without answering: processes that wait for
 * them cannot be killed before fuse_end(). It ends by itself when the program's time is over, or
 * with the test.
 */
#ifndef PYPROF_TESTS_HARNESS_FUSE_H
#define PYPROF_TESTS_HARNESS_FUSE_H

#include <sys/types.h>

struct fuse_fs {
	char dir[64], file[80];
	pid_t server;
	volatile int *stalled; /* shared with the server */
	volatile int *flushes; /* shared with the server: number of flushes that are not answered */
};

/*
 * Mount the file system. content: path of the executable file to serve a copy of; NULL: a file of
 * one MiB that is never read. Returns false if this machine does not support it.
 */
_Bool fuse_start(struct fuse_fs *fs, const char *content);
/* Stop answering requests. */
void fuse_silence(struct fuse_fs *fs);
/* Returns whether a process waits in close() for the server. */
_Bool fuse_holds_a_close(const struct fuse_fs *fs);
/* End the server, which releases all waiting processes, and unmount. */
void fuse_end(struct fuse_fs *fs);

#endif
