/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths in directories that other users can write to. A symbolic link is followed only if it belongs
 * to root or to the effective user: another user's link could lead anywhere.
 */
#ifndef PYPROF_BASE_SAFEPATH_H
#define PYPROF_BASE_SAFEPATH_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/diag.h"

/*
 * Open (O_PATH) the directory of what path means, trusted symbolic links resolved, the last
 * component's as well. ret_name: the name in that directory, owned by the caller; it is no symbolic
 * link at this moment and may not exist. "." or ".." if path names a directory that way.
 *
 * -EPERM: another user's symbolic link (diag names it); -ELOOP: too many links; else what openat(2)
 * says (diag is left to the caller). path must not be empty.
 */
int safepath_open_parent(const char *path, int *ret_dir, char **ret_name, struct diag *diag);

/* Can only the effective user (and root) create, rename or remove files in this directory? */
bool safepath_is_private(const struct stat *dir);

#endif
