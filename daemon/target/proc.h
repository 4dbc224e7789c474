/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading files in /proc: small texts of unknown size. Parts that a process controls (name,
 * arguments) are hostile.
 */
#ifndef PYPROF_TARGET_PROC_H
#define PYPROF_TARGET_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read a whole file, at most max bytes (else -EFBIG). *ret is malloc'd and NUL-terminated; ret_size
 * may be NULL. dirfd and path as for openat(2). Returns 0 or a negative errno; -ESRCH if the
 * process is gone. */
int proc_read(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size);

/* The same from an open file, which is always closed. */
int proc_read_fd(int fd, size_t max, char **ret, size_t *ret_size);

/* The text after "key:" and white space in a status file, or NULL. Borrowed. */
const char *proc_field(const char *status, const char *key);

/* The last number of a status line ("NSpid:\t812\t7" → 7); 0: no such line. */
pid_t proc_last_pid(const char *status, const char *key);

/* Fields of a stat file; times in clock ticks */
struct proc_stat {
	char comm[16];
	char state;
	bool exiting; /* PF_EXITING, which the kernel sets before it releases any resource of the
		       * task */
	uint64_t utime, stime, starttime;
};

/* Pure. -EINVAL if text is not a stat line. */
int proc_stat_parse(const char *text, struct proc_stat *ret);
int proc_stat_read(int dirfd, const char *path, struct proc_stat *ret);

/* The resident memory of a process, bytes. */
int proc_rss(pid_t pid, uint64_t *ret);

/* Returns whether the process or thread of this stat file uses a CPU or waits for one. */
bool proc_runs(const char *path);

#endif
