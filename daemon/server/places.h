/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places for connections, and who may take how many. A fifth of them is for users who may not
 * use the daemon: they have to be told so, but must not shut out the others. The rest is kept for
 * root and the daemon's own user, half of it for each. A new connection is always let in: where a
 * limit is reached, another one, of the same user if possible, gives way. Pure.
 */
#ifndef PYPROF_SERVER_PLACES_H
#define PYPROF_SERVER_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A connection. Owned by whoever entered it, until places_leave(). */
struct place {
	struct place *next;
	uid_t uid;	   /* of the client */
	uint64_t begun_ns; /* connected, or finished with the request before */
	bool answering;	   /* its request is complete, the answer is not */
	bool dropped;	   /* it is being closed, and does not count any more */
};

struct places {
	struct place *first; /* NULL: there is none */
	unsigned int max;
	uid_t owner; /* the daemon's user; may be root */
};

/* Connections that were closed by the server, by reason. */
struct dropped_clients {
	uint64_t late;	  /* no complete request within the timeout */
	uint64_t unread;  /* the answer was not read, or too slowly */
	uint64_t crowded; /* too many of the user: the oldest gave way to a new one */
};

/* How many this user may take. */
unsigned int places_of(const struct places *p, uid_t uid);

/*
 * Enter one. Returns the one that has to be dropped for it, or NULL. That is the new one only where
 * max is so small that its user has no place at all.
 */
struct place *places_enter(struct places *p, struct place *entering);

void places_leave(struct places *p, struct place *leaving);

#endif
