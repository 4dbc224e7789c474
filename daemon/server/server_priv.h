/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the server: server.c listens and turns, server_conns.c serves connections. */
#ifndef PYPROF_SERVER_SERVER_PRIV_H
#define PYPROF_SERVER_SERVER_PRIV_H

#include <microhttpd.h>

#include "server/access.h"
#include "server/server.h"

struct sd_event_source;

/* A listening socket, with a libmicrohttpd of its own */
struct port {
	struct server *srv;
	struct MHD_Daemon *mhd; /* NULL: none */
	struct sd_event_source *io, *timer;
	struct places places;
	/* The rules of the HTTP listener; NULL: the control socket, whose peers the kernel knows. */
	const struct access *access;
};

struct server {
	struct port control, http;
	struct routes_ctx routes;
	struct sd_event_source *drain_timer;
	struct sd_event_source *look;  /* timer, while requests wait */
	struct sd_event_source *sweep; /* timer, while there are connections */
	struct sessions_listener listener;
	uint64_t timeout_ns;
	size_t least_rate;
	struct conn *waiting;
	size_t answering; /* requests whose response is not completely sent */
	void (*drained)(void *ctx);
	void *drained_ctx;
};

/* Callbacks of libmicrohttpd; cls is the port. */
enum MHD_Result server_on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **con_cls);
void *server_on_uri(void *cls, const char *uri, struct MHD_Connection *connection);
void server_on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
			 enum MHD_RequestTerminationCode code);
void server_on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code);

/*
 * Enforce deadlines for requests and for reading responses, however slowly data arrives. at_ns: the time for which
 * this check was planned. If it is late, because the event loop was busy or the machine is, deadlines are later, too.
 */
void server_check_deadlines(struct server *srv, uint64_t at_ns);
/* Resume connections whose wait is over, or all. Returns whether there were any. */
bool server_resume(struct server *srv, bool all);
/* Check waiting requests again when the first of them may be ready. */
void server_check_soon(struct server *srv);
/* Check deadlines within a second. */
void server_deadlines_soon(struct server *srv);
/* All responses are sent: end the drain. */
void server_drain_check(struct server *srv);

#endif
