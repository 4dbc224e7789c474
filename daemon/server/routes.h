/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control API: one table of routes, and the function that turns a request into a response by
 * it. Knows sessions and formats, but neither sockets nor HTTP's syntax; tests and the fuzzer call
 * it directly.
 */
#ifndef PYPROF_SERVER_ROUTES_H
#define PYPROF_SERVER_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/peer.h"
#include "server/places.h"
#include "server/request.h"
#include "server/response.h"
#include "session/session.h"

/* What handlers work on. Borrowed by everybody. */
struct routes_ctx {
	struct sessions *sessions;
	uint64_t start_ns;     /* CLOCK_MONOTONIC: when the daemon was started */
	uid_t owner;	       /* the daemon's user */
	size_t held;	       /* bytes of profiles that are still being sent */
	size_t bodies_max;     /* 0: ROUTES_BODIES_MAX */
	struct render *render; /* the profile that is being written; NULL: none is */
	struct dropped_clients dropped;
	bool draining; /* shutting down: everything is answered with 503 */
	/* End the daemon: results are written before it returns. A failure is the client's answer,
	 * the daemon ends nevertheless. */
	int (*shutdown)(void *ctx, struct diag *diag);
	void *ctx;
};

/*
 * Profiles are written into memory before they are sent, since only then their length, and whether
 * that worked, is known. All that are being sent together may take this much; what would be more is
 * refused, with HTTP status 507 if it is too large by itself, 503 if others leave no room.
 */
#define ROUTES_BODIES_MAX ((size_t)512 << 20)

struct render;

struct route {
	const char *method;
	const char *path;   /* a segment in braces matches one number: /v1/targets/{pid} */
	const char *params; /* known parameters, comma-separated; NULL: none */
	enum privilege privilege;
	/* path_pid: what {pid} matched, else 0. */
	int (*handle)(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
		      struct response *rs, struct diag *diag);
	const char *help;
	enum route_wait {
		WAIT_NOT,
		WAIT_STOPPED,  /* nothing it is about is being stopped */
		WAIT_CURRENT,  /* the probes' records up to the request have been read */
		WAIT_LOOKED,   /* the process that is being attached has been inspected */
		WAIT_RENDERER, /* no other profile is being written */
		WAIT_RENDERED, /* the profile that was asked for is written */
	} wait;
	bool target_opts; /* its parameters are those of target_opt_table, too */
	bool renders;	  /* its answer is a profile: see WAIT_RENDERED */
	bool draining;	  /* answered even when the daemon is shutting down */
	bool no_head;	  /* its GET changes something, or makes a profile: HEAD is a 405 */
};

extern const struct route routes[]; /* ends with method == NULL */

/*
 * The route for a method and a path (HEAD counts as GET where that changes nothing). NULL: rs is
 * the error, 404 or 405. ret_pid: what {pid} matched.
 */
const struct route *routes_find(const char *method, const char *path, pid_t *ret_pid,
				struct response *rs);

/* A request as it was received. Everything is borrowed. */
struct routes_input {
	struct ucred peer;
	const char *method, *uri, *body;
	size_t nbody;
	uint64_t since_ns; /* CLOCK_MONOTONIC: when it was received; 0: it does not wait */
	bool rendered;	   /* it has waited for WAIT_RENDERED */
};

/* What an answer waits for. */
struct routes_wait {
	enum route_wait what; /* WAIT_NOT: the answer is there */
	pid_t pid;
};

/*
 * Answer one request. Always fills rs, which is initialised, unless the answer has to wait for
 * rings that cannot be read in a moment, for a process that is being inspected, or for a profile that
 * is being written: then *wait says for what. When routes_ready returns true, or earlier, it is to be
 * dispatched again with the same since_ns.
 */
void routes_dispatch(struct routes_ctx *ctx, const struct routes_input *in, struct response *rs,
		     struct routes_wait *wait);
bool routes_ready(const struct routes_ctx *ctx, const struct routes_wait *wait, uint64_t since_ns);
/* The request that waits for this is not dispatched again. Blocks while its profile is written. */
void routes_forget(struct routes_ctx *ctx, const struct routes_wait *wait);

#endif
