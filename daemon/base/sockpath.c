// SPDX-License-Identifier: BSD-2-Clause
/* Where the control socket is: see sockpath.h. */
#include "base/sockpath.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

const char *sockpath_choose(const char *opt)
{
	const char *env;

	if (opt)
		return opt;
	env = secure_getenv(SOCKPATH_ENV);
	return env && *env ? env : SOCKPATH_DEFAULT;
}

int sockpath_addr(const char *path, struct sockaddr_un *ret, struct diag *diag)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t n = strlen(path);

	if (!n)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "give --socket a path",
				"the socket's path is empty");
	if (n >= sizeof(addr.sun_path))
		return diag_set(diag, -ENAMETOOLONG, PYP_EXIT_USAGE,
				"choose a shorter path with --socket",
				"the socket's path is %zu bytes long, a socket can have %zu", n,
				sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, path, n + 1);
	*ret = addr;
	return 0;
}
