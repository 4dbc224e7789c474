/* SPDX-License-Identifier: BSD-2-Clause */
/* The path of the control socket: --socket, else $PYPROFD_SOCKET, else the default. */
#ifndef PYPROF_BASE_SOCKPATH_H
#define PYPROF_BASE_SOCKPATH_H

#include <sys/un.h>

#include "base/diag.h"

#define SOCKPATH_DEFAULT_DIR "/run/pyprofd"
#define SOCKPATH_DEFAULT     SOCKPATH_DEFAULT_DIR "/pyprofd.sock"
#define SOCKPATH_ENV	     "PYPROFD_SOCKET"

/* opt: the value of --socket or NULL. The result borrows from opt or the environment. */
const char *sockpath_choose(const char *opt);

/* The address for bind(2) or connect(2). Exit code 2 if the path is empty, longer than 107 bytes,
 * or can only name a directory. */
int sockpath_addr(const char *path, struct sockaddr_un *ret, struct diag *diag);

#endif
