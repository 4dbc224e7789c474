// SPDX-License-Identifier: BSD-2-Clause
/* Access control: see peer.h. */
#include "server/peer.h"

#include <errno.h>

bool peer_allowed(const struct ucred *peer, uid_t owner, enum privilege privilege)
{
	/* reading a profile reveals as much about a target as making one, so both need the same
	 * rights */
	(void)privilege;
	return peer->uid == 0 || peer->uid == owner;
}

int peer_check(const struct ucred *peer, uid_t owner, enum privilege privilege, struct diag *diag)
{
	if (peer_allowed(peer, owner, privilege))
		return 0;
	return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION, "use root or the daemon's user",
			"user %u has no permission to use this daemon", peer->uid);
}

int peer_get(int fd, struct ucred *ret)
{
	socklen_t n = sizeof(*ret);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &n) < 0 ? -errno : 0;
}
