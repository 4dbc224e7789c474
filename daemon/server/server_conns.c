// SPDX-License-Identifier: BSD-2-Clause
/*
 * Connections and requests of the HTTP server: see server.h.
 *
 * A connection has one struct conn for its lifetime, reset after each request, because
 * libmicrohttpd does not return memory that was allocated for a request before its headers were
 * complete.
 *
 * This file closes and counts connections that are late or too many (places.h). libmicrohttpd's own
 * timeout also finds those whose response is not read at all.
 */
#include "server/server_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "server/address.h"

#define DISCARD_MAX (1024 * 1024) /* limit of an excessive body that is read and discarded */
#define CHECK_NS    4000000ull	  /* interval of checking whether requests still have to wait */
#define LATE_NS	    1000000000ull /* a check that is later than that extends the deadlines */

struct conn {
	struct place place; /* must be first: conn_at() */
	struct port *port;
	struct server *srv; /* port's */
	struct peer peer;
	int fd;		 /* libmicrohttpd's */
	uint64_t due_ns; /* deadline of the client's sending or reading; 0: waiting for the
			  * daemon */
	char *uri;	 /* as received; NULL: out of memory */
	bool started;
	char *body;
	size_t held;	   /* bytes of the profile being sent */
	size_t nbody;	   /* bytes received; beyond REQUEST_BODY_MAX only counted */
	uint64_t since_ns; /* time the request was complete; 0: incomplete */
	/* If suspended, the response waits for `wait`. */
	struct MHD_Connection *suspended; /* NULL: not suspended */
	struct routes_wait wait;
	struct sd_event_source *gone; /* while it waits for a time: the client closes */
	struct conn *next;	      /* next waiting connection */
};

/* Prepare for the first or next request. */
static void conn_reset(struct conn *c)
{
	struct server *srv = c->srv;
	uint64_t now = clock_monotonic_ns();

	if (c->started)
		srv->answering--;
	routes_forget(&srv->routes, &c->wait);
	bodies_remove(&srv->routes.bodies, c->held, peer_only_reads(&c->peer, srv->routes.owner));
	free(c->uri);
	free(c->body);
	*c = (struct conn){.place = c->place,
			   .port = c->port,
			   .srv = srv,
			   .peer = c->peer,
			   .fd = c->fd,
			   .due_ns = now + srv->timeout_ns};
	c->place.begun_ns = now;
	c->place.answering = false;
}

/* ---- closing connections ------------------------------------------------------------------ */

static struct conn *conn_at(struct place *place)
{
	return (struct conn *)(void *)place;
}

/* Close the connection; libmicrohttpd sees it as closed by the client. count: counter of the
 * reason. */
static void conn_drop(struct conn *c, uint64_t *count)
{
	log_debug("dropped a connection of user %u", c->peer.uid);
	++*count;
	c->place.dropped = true;
	shutdown(c->fd, SHUT_RDWR);
}

/* Peers of the HTTP listener are counted by their host, and may read what it serves. */
static void identify(struct conn *c)
{
	struct address a = {.n = sizeof(a.sa)};

	if (!c->port->access) {
		/* unknown: no permissions */
		(void)peer_get(c->fd, c->srv->routes.readers, &c->peer);
		c->place.uid = c->peer.uid;
		return;
	}
	c->peer = (struct peer){.uid = (uid_t)-1, .member = true};
	(void)getpeername(c->fd, (struct sockaddr *)&a.sa, &a.n);
	c->place.uid = address_host(&a);
}

static void conn_enter(struct conn *c, int fd)
{
	struct server *srv = c->srv;
	struct place *out;

	c->fd = fd;
	identify(c);
	conn_reset(c);
	out = places_enter(&c->port->places, &c->place);
	if (out)
		conn_drop(conn_at(out), &srv->routes.dropped.crowded);
	server_deadlines_soon(srv);
}

/* late_ns: for this duration, nothing was read or sent that clients may have sent or read in time. */
static void check_deadlines(struct port *port, uint64_t now, uint64_t late_ns)
{
	struct dropped_clients *counts = &port->srv->routes.dropped;

	for (struct place *p = port->places.first; p; p = p->next) {
		struct conn *c = conn_at(p);

		if (c->due_ns)
			c->due_ns += late_ns;
		if (c->due_ns && now > c->due_ns && !p->dropped)
			conn_drop(c, p->answering ? &counts->unread : &counts->late);
	}
}

void server_check_deadlines(struct server *srv, uint64_t at_ns)
{
	const uint64_t now = clock_monotonic_ns();
	const uint64_t late_ns = now > at_ns + LATE_NS ? now - at_ns : 0;

	check_deadlines(&srv->control, now, late_ns);
	check_deadlines(&srv->http, now, late_ns);
	if (srv->control.places.first || srv->http.places.first)
		server_deadlines_soon(srv);
}

/* --- one request --- */

static struct conn *conn_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* On success, libmicrohttpd owns the response's contents. */
static struct MHD_Response *response_to_mhd(struct response *rs)
{
	struct MHD_Response *mr;

	if (rs->fd >= 0) {
		mr = MHD_create_response_from_fd64(rs->size, rs->fd);
		if (mr)
			rs->fd = -1;
		return mr;
	}
	mr = MHD_create_response_from_buffer(rs->size, rs->body ? rs->body : (char *)"",
					     rs->body ? MHD_RESPMEM_MUST_FREE
						      : MHD_RESPMEM_PERSISTENT);
	if (mr)
		rs->body = NULL;
	return mr;
}

static void add_attachment(struct MHD_Response *mr, const char *name)
{
	char text[64];

	snprintf(text, sizeof(text), "attachment; filename=\"%s\"", name);
	MHD_add_response_header(mr, MHD_HTTP_HEADER_CONTENT_DISPOSITION, text);
}

static enum MHD_Result send_response(struct conn *c, struct MHD_Connection *connection,
				     struct response *rs)
{
	bool in_memory_file = rs->fd >= 0;
	struct MHD_Response *mr = response_to_mhd(rs);
	enum MHD_Result sent;

	if (!mr)
		return MHD_NO; /* closes the connection */
	MHD_add_response_header(mr, MHD_HTTP_HEADER_CONTENT_TYPE, rs->mime);
	MHD_add_response_header(mr, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (rs->allow[0])
		MHD_add_response_header(mr, MHD_HTTP_HEADER_ALLOW, rs->allow);
	if (rs->location[0])
		MHD_add_response_header(mr, MHD_HTTP_HEADER_LOCATION, rs->location);
	if (rs->attachment)
		add_attachment(mr, rs->attachment);
	if (rs->for_go)
		MHD_add_response_header(mr, "X-Go-Pprof", "1");
	if (c->port->access)
		MHD_add_response_header(mr, "X-Content-Type-Options", "nosniff");
	if (rs->status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(mr, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
					"Basic realm=\"pyprofd\"");
	if (c->srv->routes.draining)
		MHD_add_response_header(mr, MHD_HTTP_HEADER_CONNECTION, "close");
	sent = MHD_queue_response(connection, rs->status, mr);
	c->place.answering = true;
	c->due_ns = clock_monotonic_ns() + c->srv->timeout_ns +
		    (uint64_t)rs->size * CLOCK_NS_PER_S / c->srv->least_rate;
	if (sent == MHD_YES && in_memory_file) {
		c->held = rs->size;
		bodies_add(&c->srv->routes.bodies, c->held,
			   peer_only_reads(&c->peer, c->srv->routes.owner));
	}
	MHD_destroy_response(mr);
	return sent;
}

/* Requests to the HTTP listener have no body. */
static size_t body_max(const struct conn *c)
{
	return c->port->access ? 0 : REQUEST_BODY_MAX;
}

static enum MHD_Result send_too_large(struct conn *c, struct MHD_Connection *connection)
{
	struct response rs;
	struct diag diag = {0};
	enum MHD_Result sent;

	response_init(&rs);
	if (body_max(c))
		diag_set(&diag, -EMSGSIZE, PYP_EXIT_USAGE, "send a smaller one",
			 "the body is larger than %zu bytes", body_max(c));
	else
		diag_set(&diag, -EMSGSIZE, PYP_EXIT_USAGE, "send GET requests",
			 "requests to this listener have no body");
	response_set_error(&rs, 413, &diag, -EMSGSIZE);
	sent = send_response(c, connection, &rs);
	response_deinit(&rs);
	return sent;
}

/* The time of the next check: what does not wait for a known time is checked at intervals. */
static uint64_t next_check(const struct server *srv)
{
	const uint64_t soon = clock_monotonic_ns() + CHECK_NS;
	uint64_t ret = UINT64_MAX;

	for (const struct conn *c = srv->waiting; c; c = c->next) {
		const uint64_t at = c->wait.until_ns && !c->place.dropped ? c->wait.until_ns : soon;

		if (at < ret)
			ret = at;
	}
	return ret;
}

void server_check_soon(struct server *srv)
{
	if (!srv->waiting)
		return;
	(void)sd_event_source_set_time(srv->look, next_check(srv) / 1000 + 1);
	(void)sd_event_source_set_enabled(srv->look, SD_EVENT_ONESHOT);
}

/* libmicrohttpd does not watch suspended connections. */
static int on_gone(struct sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct conn *c = userdata;

	(void)source, (void)fd, (void)revents;
	c->gone = sd_event_source_disable_unref(c->gone);
	c->place.dropped = true;
	server_check_soon(c->srv);
	return 0;
}

static void watch(struct conn *c)
{
	if (sd_event_add_io(sd_event_source_get_event(c->srv->look), &c->gone, c->fd, EPOLLRDHUP,
			    on_gone, c) < 0)
		log_debug("cannot watch a waiting client");
}

/* libmicrohttpd calls server_on_request() again when the connection is resumed. */
static enum MHD_Result suspend(struct conn *c, struct MHD_Connection *connection,
			       const struct routes_wait *wait)
{
	struct conn **end = &c->srv->waiting;

	c->wait = *wait;
	c->suspended = connection;
	c->next = NULL;
	while (*end)
		end = &(*end)->next;
	*end = c;
	MHD_suspend_connection(connection);
	if (wait->until_ns)
		watch(c);
	server_check_soon(c->srv);
	return MHD_YES;
}

/* Closed connections end at once, except while their profile is being written. */
static bool wait_is_over(const struct server *srv, const struct conn *c)
{
	return (c->place.dropped && c->wait.what != WAIT_RENDERED) ||
	       routes_ready(&srv->routes, &c->wait, c->since_ns);
}

bool server_resume(struct server *srv, bool all)
{
	bool any = false;

	for (struct conn **at = &srv->waiting; *at;) {
		struct conn *c = *at;

		if (!all && !wait_is_over(srv, c)) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		c->gone = sd_event_source_disable_unref(c->gone);
		MHD_resume_connection(TAKE_PTR(c->suspended));
		any = true;
	}
	return any;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result answer(struct conn *c, struct MHD_Connection *connection, const char *method)
{
	struct routes_input in = {.peer = c->peer,
				  .method = method,
				  .uri = c->uri,
				  .body = c->body ? c->body : "",
				  .nbody = c->nbody,
				  .accept = header_of(connection, MHD_HTTP_HEADER_ACCEPT),
				  .http = c->port->access != NULL};
	struct routes_wait wait;
	struct response rs;
	enum MHD_Result sent;

	if (!c->since_ns)
		c->since_ns = clock_monotonic_ns();
	in.since_ns = c->since_ns;
	in.waited = c->wait.what;
	in.span = c->wait.span;
	c->wait = (struct routes_wait){0};
	c->place.answering = true;
	c->due_ns = 0;
	if (!c->uri)
		return MHD_NO;
	response_init(&rs);
	routes_dispatch(&c->srv->routes, &in, &rs, &wait);
	if (wait.what != WAIT_NOT) {
		response_deinit(&rs);
		return suspend(c, connection, &wait);
	}
	log_debug("%s %.200s: %u", method, c->uri, rs.status);
	sent = send_response(c, connection, &rs);
	response_deinit(&rs);
	return sent;
}

static int check_access(struct conn *c, struct MHD_Connection *connection, struct diag *diag)
{
	char *password = NULL, *user = MHD_basic_auth_get_username_password(connection, &password);
	const struct access_asked asked = {
		.host = header_of(connection, MHD_HTTP_HEADER_HOST),
		.origin = header_of(connection, MHD_HTTP_HEADER_ORIGIN),
		.site = header_of(connection, "Sec-Fetch-Site"),
		.authorization = header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION),
		.password = password,
	};
	int r = access_check(c->port->access, &asked, &c->srv->routes.refused, diag);

	MHD_free(user);
	MHD_free(password);
	return r;
}

static enum MHD_Result send_refusal(struct conn *c, struct MHD_Connection *connection, int err,
				    const struct diag *diag)
{
	struct response rs;
	enum MHD_Result sent;

	response_init(&rs);
	response_set_error(&rs, err == -EACCES ? MHD_HTTP_UNAUTHORIZED : MHD_HTTP_FORBIDDEN, diag,
			   err);
	sent = send_response(c, connection, &rs);
	response_deinit(&rs);
	return sent;
}

static enum MHD_Result begin(struct conn *c, struct MHD_Connection *connection)
{
	const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
	struct diag diag = {0};
	uint64_t n;
	int r = c->port->access ? check_access(c, connection, &diag) : 0;

	c->started = true;
	c->srv->answering++;
	if (r < 0)
		return send_refusal(c, connection, r, &diag);
	if (length && parse_u64(length, 0, body_max(c), &n) < 0)
		return send_too_large(c, connection); /* the body is never read */
	return MHD_YES;
}

static enum MHD_Result receive(struct conn *c, const char *data, size_t n)
{
	const size_t all = c->nbody + n;

	if (all > 0 && all <= body_max(c)) {
		char *body = realloc(c->body, all);

		if (!body)
			return MHD_NO;
		memcpy(body + c->nbody, data, n);
		c->body = body;
	}
	c->nbody += n;
	return c->nbody > DISCARD_MAX ? MHD_NO : MHD_YES;
}

/* Called when the headers are complete, for each piece of the body, and at the end. */
enum MHD_Result server_on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **con_cls)
{
	struct conn *c = conn_of(connection);
	enum MHD_Result r;

	(void)cls, (void)url, (void)version, (void)con_cls;
	if (!c || c->place.dropped)
		return MHD_NO;
	if (!c->started)
		return begin(c, connection);
	if (*size) {
		r = receive(c, data, *size);
		*size = 0;
		return r;
	}
	if (c->nbody > body_max(c))
		return send_too_large(c, connection);
	return answer(c, connection, method);
}

/* The only callback that gets the URL before decoding. */
void *server_on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
	struct conn *c = conn_of(connection);

	(void)cls;
	if (c) {
		free(c->uri);
		c->uri = strdup(uri);
	}
	return c;
}

/* Clients can still fetch the rest of timelines. */
void server_drain_check(struct server *srv)
{
	struct sessions_timeline_status st;

	if (srv->drain_timer && !srv->answering &&
	    !sessions_timeline_status(srv->routes.sessions, 0, &st))
		(void)sd_event_source_set_time(srv->drain_timer, 0);
}

void server_on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
			 enum MHD_RequestTerminationCode code)
{
	struct server *srv = ((struct port *)cls)->srv;
	struct conn *c = conn_of(connection);

	(void)con_cls;
	/* a timeout while sending means that the client does not read */
	if (c && code == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED && !c->place.dropped)
		++*(c->place.answering ? &srv->routes.dropped.unread : &srv->routes.dropped.late);
	if (c)
		conn_reset(c);
	server_drain_check(srv);
}

void server_on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct conn *c = *socket_context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		c = info ? calloc(1, sizeof(*c)) : NULL;
		*socket_context = c;
		if (!c)
			return;
		c->port = cls;
		c->srv = c->port->srv;
		conn_enter(c, info->connect_fd);
	} else if (c) {
		places_leave(&c->port->places, &c->place);
		conn_reset(c);
		free(c);
		*socket_context = NULL;
	}
}
