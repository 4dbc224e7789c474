/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits on connections by user. A fifth is for users who are not allowed to use the daemon, so
 * that they get an error but cannot block others. The rest is for root and the daemon's user, half
 * for each. Clients of the HTTP listener are counted by host instead. A new connection is always accepted; if a limit is reached, another one is closed for
 * it, of the same user if possible. Pure.
 */
#ifndef PYPROF_SERVER_PLACES_H
#define PYPROF_SERVER_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A connection. Owned by the caller of places_enter(), in use until places_leave(). */
struct place {
	struct place *next;
	uid_t uid;	   /* of the client */
	uint64_t begun_ns; /* time it connected or completed the previous request */
	bool answering;	   /* the request is complete, the response is not */
	bool dropped;	   /* being closed; no longer counted */
};

struct places {
	struct place *first; /* NULL: none */
	unsigned int max;
	uid_t owner; /* the daemon's user; may be root */
	/* Clients of a network: uid is their host's number, none has privileges, one host has at most
	 * half of the places. */
	bool by_host;
};

/* Connections closed by the server, by reason */
struct dropped_clients {
	uint64_t late;	  /* no complete request before the timeout */
	uint64_t unread;  /* response not read, or read too slowly */
	uint64_t crowded; /* too many of one user: the oldest was closed for a new one */
};

/* Maximum number of connections of this user */
unsigned int places_of(const struct places *p, uid_t uid);

/*
 * Add a connection. Returns the connection to close for it, or NULL. That is the new one only if
 * max is so small that its user may have none.
 */
struct place *places_enter(struct places *p, struct place *entering);

void places_leave(struct places *p, struct place *leaving);

#endif
