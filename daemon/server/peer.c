// SPDX-License-Identifier: BSD-2-Clause
/* Access control: see peer.h. */
#include "server/peer.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define ENTRY_MAX (1 << 20) /* bytes of a group's entry, which names all its members */

static bool is_owner(const struct peer *peer, uid_t owner)
{
	return peer->uid == 0 || peer->uid == owner;
}

bool peer_allowed(const struct peer *peer, uid_t owner, enum privilege privilege)
{
	return is_owner(peer, owner) || (peer->member && privilege == PRIVILEGE_READ);
}

bool peer_only_reads(const struct peer *peer, uid_t owner)
{
	return !is_owner(peer, owner);
}

int peer_check(const struct peer *peer, uid_t owner, enum privilege privilege, struct diag *diag)
{
	if (peer_allowed(peer, owner, privilege))
		return 0;
	return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION, "use root or the daemon's user",
			"user %u %s", peer->uid,
			peer->member ? "may only read from this daemon"
				     : "has no permission to use this daemon");
}

/* The peer's supplementary groups, as when it connected. *ret is owned by the caller. */
static int groups_of(int fd, gid_t **ret, size_t *ret_n)
{
	_cleanup_free_ gid_t *groups = NULL;
	socklen_t size = 0;

	/* The first call only returns the size, which does not change later. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) < 0 && errno != ERANGE)
		return -errno;
	groups = malloc(size + 1);
	if (!groups)
		return -ENOMEM;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return -errno;
	*ret = TAKE_PTR(groups);
	*ret_n = size / sizeof(**ret);
	return 0;
}

static bool is_member(int fd, gid_t own, gid_t group)
{
	_cleanup_free_ gid_t *groups = NULL;
	size_t n = 0;

	if (group == PEER_NO_GROUP)
		return false;
	if (own == group)
		return true;
	if (groups_of(fd, &groups, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (groups[i] == group)
			return true;
	return false;
}

int peer_get(int fd, gid_t readers, struct peer *ret)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	*ret = (struct peer){.uid = (uid_t)-1};
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return -errno;
	*ret = (struct peer){.uid = cred.uid, .member = is_member(fd, cred.gid, readers)};
	return 0;
}

static int no_group(const char *name, struct diag *diag)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "create it, e.g. with groupadd --system",
			"there is no group '%s'", name);
}

int peer_find_group(const char *name, gid_t *ret, struct diag *diag)
{
	struct group entry, *found = NULL;
	int err = ERANGE;

	if (!name) {
		*ret = PEER_NO_GROUP;
		return 0;
	}
	for (size_t size = 4096; err == ERANGE && size <= ENTRY_MAX; size *= 4) {
		_cleanup_free_ char *buf = malloc(size);

		if (!buf)
			return -ENOMEM;
		err = getgrnam_r(name, &entry, buf, size, &found);
		if (err == 0 && found) {
			*ret = entry.gr_gid;
			return 0;
		}
	}
	return err ? diag_errno(diag, err, "cannot look up the group '%s'", name)
		   : no_group(name, diag);
}
