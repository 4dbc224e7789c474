/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control API's HTTP/1.1 server: libmicrohttpd without threads of its own, driven by the
 * daemon's event loop. It receives requests, hands them to routes.c, and sends the answers. Caps
 * everything that a client can make it hold: connections (places.h), memory each, URL, headers,
 * body, time.
 */
#ifndef PYPROF_SERVER_SERVER_H
#define PYPROF_SERVER_SERVER_H

#include "base/cleanup.h"
#include "base/diag.h"
#include "server/routes.h"

struct sd_event;
struct server;

struct server_opts {
	struct routes_ctx routes;
	unsigned int timeout_s;	      /* for a request, and between pieces of an answer; 0: 10 */
	unsigned int max_connections; /* 0: the default, 64 */
	/* Bytes per second: an answer has to be read within its size by this, and the timeout.
	 * 0: the default, 64 KiB */
	size_t least_rate;
};

/* listen_fd: a listening, non-blocking AF_UNIX socket; the server duplicates it. */
int server_new(struct sd_event *event, int listen_fd, const struct server_opts *opts,
	       struct server **ret, struct diag *diag);

/*
 * From now on everything is answered with 503, but for what is left of timelines. done is called,
 * from the event loop, when no answer is under way any more, or after a second at the most.
 */
int server_drain(struct server *srv, void (*done)(void *ctx), void *ctx);

/* Closes every connection. */
void server_free(struct server *srv);
DEFINE_FREEP(struct server, server_free)

#endif
