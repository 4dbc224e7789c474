// SPDX-License-Identifier: BSD-2-Clause
/* Who may ask for what: see peer.h. */
#include "server/peer.h"

#include <errno.h>

bool peer_allowed(const struct ucred *peer, uid_t owner, enum privilege privilege)
{
	/* reading a profile tells as much about the target as making one: no difference so far */
	(void)privilege;
	return peer->uid == 0 || peer->uid == owner;
}

int peer_check(const struct ucred *peer, uid_t owner, enum privilege privilege, struct diag *diag)
{
	if (peer_allowed(peer, owner, privilege))
		return 0;
	return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION,
			"ask as root or as the daemon's own user",
			"user %u may not use this daemon", peer->uid);
}

int peer_get(int fd, struct ucred *ret)
{
	socklen_t n = sizeof(*ret);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &n) < 0 ? -errno : 0;
}
