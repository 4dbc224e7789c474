/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The HTTP/1.1 server of the control API and of scrapers: libmicrohttpd without threads, driven by
 * the daemon's event loop. It receives requests on the control socket and, if there is one, on the HTTP
 * listener, passes them to routes.c, and sends the responses. Limits everything
 * that clients can make it hold: connections (places.h), their memory, URLs, headers, bodies, and
 * time.
 */
#ifndef PYPROF_SERVER_SERVER_H
#define PYPROF_SERVER_SERVER_H

#include "base/cleanup.h"
#include "base/diag.h"
#include "server/http_listener.h"
#include "server/routes.h"

struct sd_event;
struct server;

struct server_opts {
	struct routes_ctx routes;
	unsigned int timeout_s;	      /* for a request, and between pieces of a response; 0: 10 */
	unsigned int max_connections; /* of a socket; 0: the default, 64 and 32 */
	const struct http_listener *http; /* NULL: none; borrowed until server_free() */
	/* A response must be read at this rate (bytes per second), plus the timeout. 0: the
	 * default, 64 KiB. */
	size_t least_rate;
};

/* listen_fd: a listening, non-blocking AF_UNIX socket; duplicated. *ret is owned by the caller. */
int server_new(struct sd_event *event, int listen_fd, const struct server_opts *opts,
	       struct server **ret, struct diag *diag);

/* With routes.starting: the targets of the command line are attached, so requests that have waited
 * for that are processed. */
void server_started(struct server *srv);

/* Answer new requests with 503 from now on, except reads of timelines, and cancel attaching. */
void server_refuse(struct server *srv);
/*
 * The same, if it was not called before; results are written. Calls done from the event loop when no
 * response is pending, or after a second.
 */
int server_drain(struct server *srv, void (*done)(void *ctx), void *ctx);

/* Closes all connections. NULL is accepted. */
void server_free(struct server *srv);
DEFINE_FREEP(struct server, server_free)

#endif
