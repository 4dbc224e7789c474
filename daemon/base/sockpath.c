// SPDX-License-Identifier: BSD-2-Clause
/* The path of the control socket: see sockpath.h. */
#include "base/sockpath.h"

#include <errno.h>
#include <stdbool.h>
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

/* Returns whether the path ends in "/", "." or "..". */
static bool names_directory(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int sockpath_addr(const char *path, struct sockaddr_un *ret, struct diag *diag)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t n = strlen(path);

	if (!n)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "give a path with --socket",
				"the socket path is empty");
	if (n >= sizeof(addr.sun_path))
		return diag_set(diag, -ENAMETOOLONG, PYP_EXIT_USAGE,
				"choose a shorter path with --socket",
				"the socket path has %zu bytes; the limit is %zu", n,
				sizeof(addr.sun_path) - 1);
	if (names_directory(path))
		return diag_set(diag, -EISDIR, PYP_EXIT_USAGE,
				"add a file name: --socket DIRECTORY/NAME",
				"the socket path '%s' is a directory", path);
	memcpy(addr.sun_path, path, n + 1);
	*ret = addr;
	return 0;
}
