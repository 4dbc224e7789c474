/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The blocking variants ("_now") of functions in target.h, without a deadline (see deadline.h).
 * Private to target/, for calls that already run in a worker.
 */
#ifndef PYPROF_TARGET_TARGET_PRIV_H
#define PYPROF_TARGET_TARGET_PRIV_H

#include "target/target.h"

int target_open_now(pid_t pid, struct target **ret, struct diag *diag);
int target_refresh_now(struct target *t, struct diag *diag);
int target_hold_now(struct target *t);
int target_identify_now(const struct target *t, struct target_identity *ret);
int target_file_of_now(const char *path, struct target_file *ret);
int target_check_mount_now(const struct target *t, const char *path, struct diag *diag);
int target_threads_now(const struct target *t, struct target_thread **ret, size_t *n,
		       struct diag *diag);
int target_thread_read_now(pid_t pid, pid_t tid, struct target_thread *ret);
bool target_ending_now(pid_t pid);

#endif
