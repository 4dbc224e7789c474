/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading files of /proc: small texts whose size is not known beforehand. What a process can put
 * into them (its name, its arguments) is hostile.
 */
#ifndef PYPROF_TARGET_PROC_H
#define PYPROF_TARGET_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The whole text of a file, at most max bytes (-EFBIG beyond), malloc'd, NUL added. dirfd and path
 * as for openat. Returns 0 or a negative errno; -ESRCH where the process has gone. */
int proc_read(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size);

/* The same from an open file, which is closed in every case. */
int proc_read_fd(int fd, size_t max, char **ret, size_t *ret_size);

/* The text after "key:" and white space on a line of a status file, or NULL. Borrowed. */
const char *proc_field(const char *status, const char *key);

/* The last number of a status line ("NSpid:\t812\t7" → 7); 0: no such line. */
pid_t proc_last_pid(const char *status, const char *key);

/* What we want of a stat file; times in clock ticks. */
struct proc_stat {
	char comm[16];
	char state;
	bool exiting; /* the kernel's PF_EXITING: set before anything of it is given back */
	uint64_t utime, stime, starttime;
};

/* Pure. -EINVAL when the text is no stat line. */
int proc_stat_parse(const char *text, struct proc_stat *ret);
int proc_stat_read(int dirfd, const char *path, struct proc_stat *ret);

/* Does the process or thread of this stat file use a processor, or wait for one? */
bool proc_runs(const char *path);

#endif
