/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control API: a table of routes, and the function that processes requests. It uses sessions
 * and formats, but neither sockets nor HTTP syntax; tests and the fuzzer call it directly.
 */
#ifndef PYPROF_SERVER_ROUTES_H
#define PYPROF_SERVER_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/pusher.h"
#include "server/access.h"
#include "server/bodies.h"
#include "server/marks.h"
#include "server/peer.h"
#include "server/places.h"
#include "server/request.h"
#include "server/response.h"
#include "server/spans.h"
#include "server/totals.h"
#include "session/session.h"

/* State used by handlers */
struct routes_ctx {
	struct sessions *sessions;
	uint64_t start_ns;	     /* start of the daemon, CLOCK_MONOTONIC */
	uid_t owner;		     /* the daemon's user */
	gid_t readers;		     /* members of this group may read; PEER_NO_GROUP: no others */
	const struct pusher *pusher; /* NULL: nothing is pushed */
	struct bodies bodies;	     /* being sent */
	struct render *render;	     /* the profile being written; NULL: none */
	struct dropped_clients dropped;
	struct refused_requests refused;
	const struct http_listener *http; /* NULL: none */
	struct totals totals;		  /* of /metrics; of the render while there is one */
	size_t metrics_functions;	  /* per target in /metrics; 0: none */
	struct spans spans;		  /* of profiles that clients wait for */
	struct marks marks;		  /* of snapshots that the next ones count from */
	struct marks reader_marks;	  /* the same of those who may only read */
	bool starting; /* the targets of the command line are still being attached */
	bool draining; /* shutting down: requests get 503 */
	bool stopped;  /* shutting down, and results are written */
	/* Stop the daemon. -EINPROGRESS: call it again when `stopped` is set, as results are not
	 * written yet. Any other error is sent to the client, but the daemon stops nevertheless. */
	int (*shutdown)(void *ctx, struct diag *diag);
	/* Continuous mode's state, and what it keeps; either returns NULL in other modes (the first
	 * json_null()). They may be NULL. */
	json_t *(*continuous)(void *ctx);
	const struct keep *(*history)(void *ctx);
	/* A target (pid) or all (0) will be cleared, or one and its followed descendants will be
	 * detached: take what was recorded since the last interval. It may be NULL. */
	void (*cut)(void *ctx, pid_t pid, bool detaches);
	void *ctx;
};

struct render;
struct http_listener;
struct keep;

struct route {
	const char *method;
	const char *path;   /* a segment in braces matches a number: /v1/targets/{pid} */
	const char *params; /* allowed parameters, comma-separated; NULL: none */
	enum privilege privilege;
	/* path_pid: the number that {pid} matched, else 0 */
	int (*handle)(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
		      struct response *rs, struct diag *diag);
	const char *help;
	enum route_wait {
		WAIT_NOT,
		WAIT_STOPPED,  /* no affected target is being stopped */
		WAIT_CURRENT,  /* all records up to the request have been read */
		WAIT_STARTED,  /* the targets of the command line are attached */
		WAIT_LOOKED,   /* the process can be attached now */
		WAIT_RENDERER, /* no other profile is being written */
		WAIT_RENDERED, /* the requested profile is written */
		WAIT_SPAN,     /* the span of the profile is over */
		WAIT_SHUTDOWN, /* results are written */
	} wait;
	enum route_wait later; /* what the response waits for if handle() returns -EINPROGRESS */
	bool early;	       /* processed even before WAIT_STARTED */
	bool target_opts;      /* target_opt_table's keys are parameters, too */
	bool renders;	       /* the response is a profile: see WAIT_RENDERED */
	bool spans;	       /* the profile is of a span that begins with the request */
	bool text_errors;      /* errors are a line of text, as Go's tool shows */
	bool draining;	       /* processed even while the daemon is shutting down */
	bool http;	       /* the HTTP listener serves it, too; others it does not have */
	bool no_head;	       /* GET has side effects or makes a profile, so HEAD is a 405 */
};

extern const struct route routes[]; /* ends with method == NULL */

/*
 * Find the route for a method and path. HEAD is like GET if that has no side effects. NULL: rs is
 * set to a 404 or 405. http: of the HTTP listener's routes only. ret_pid: the number that {pid} matched.
 */
const struct route *routes_find(const char *method, const char *path, bool http, pid_t *ret_pid,
				struct response *rs);

/* A received request; all borrowed */
struct routes_input {
	struct peer peer;
	const char *method, *uri, *body;
	const char *accept; /* the header; NULL: none */
	size_t nbody;
	bool http;		/* from the HTTP listener */
	uint64_t since_ns;	/* time of receipt, CLOCK_MONOTONIC; 0: never wait */
	enum route_wait waited; /* what it has waited for */
	uint32_t span;		/* routes_wait.span of the wait before; 0: none */
};

/* Reason why a response has to wait */
struct routes_wait {
	enum route_wait what; /* WAIT_NOT: the response is complete */
	pid_t pid;
	uint32_t span;	   /* pass it back; 0: none */
	uint64_t until_ns; /* it is not over before this time, CLOCK_MONOTONIC; 0: unknown */
};

/*
 * Process a request. Fills rs (which must be initialised), unless the response has to wait for
 * rings, for a process being attached, for a profile being written, or for the daemon's start or
 * end. In that case *wait is set; dispatch the request again with the same since_ns when routes_ready() returns true, or
 * earlier.
 */
void routes_dispatch(struct routes_ctx *ctx, const struct routes_input *in, struct response *rs,
		     struct routes_wait *wait);
bool routes_ready(const struct routes_ctx *ctx, const struct routes_wait *wait, uint64_t since_ns);
/* The waiting request will not be dispatched again. Blocks while its profile is being written. */
void routes_forget(struct routes_ctx *ctx, const struct routes_wait *wait);

#endif
