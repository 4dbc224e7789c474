/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolving paths in directories that other users can write to. A symbolic link is followed only if
 * it belongs to root or the effective user, because another user's link can point anywhere.
 */
#ifndef PYPROF_BASE_SAFEPATH_H
#define PYPROF_BASE_SAFEPATH_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/diag.h"

/*
 * Open (O_PATH) the directory that contains path, with trusted symbolic links resolved, including
 * the last component's. *ret_name: the file's name in that directory, owned by the caller; it may
 * not exist, and is not a symbolic link at this moment. It is "." or ".." if path ends so.
 *
 * -EPERM: another user's symbolic link (diag names it); -ELOOP: too many links; else the error of
 * openat(2) (diag is not set). path must not be empty.
 */
int safepath_open_parent(const char *path, int *ret_dir, char **ret_name, struct diag *diag);

/* Only the effective user and root can create, rename or remove files in this directory. */
bool safepath_is_private(const struct stat *dir);

#endif
