// SPDX-License-Identifier: BSD-2-Clause
/*
 * The HTTP server: see server.h.
 *
 * libmicrohttpd keeps its sockets in an epoll set, whose descriptor is a source of the event loop;
 * a timer implements MHD_get_timeout(), and is set after each MHD_run().
 *
 * A connection has one struct conn for its lifetime, reset after each request, because
 * libmicrohttpd does not return memory that was allocated for a request before its headers were
 * complete.
 *
 * This file closes and counts connections that are late or too many (places.h). libmicrohttpd's own
 * timeout also finds those whose response is not read at all.
 */
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"

#define DEFAULT_TIMEOUT_S   10
#define DEFAULT_CONNECTIONS 64
#define DEFAULT_LEAST_RATE  (64 * 1024)
#define LATER_S                                                                                    \
	2			      /* added to libmicrohttpd's timeout, so that ours, which is
			       * counted, comes first */
#define CONNECTION_MEMORY (32 * 1024) /* request line, headers, and one buffer of body */
#define DISCARD_MAX                                                                                \
	(1024 * 1024) /* limit of an excessive body that is read and
					   * discarded */
#define DRAIN_US	  (1000 * 1000)
#define DEADLINES_US	  (1000 * 1000)
#define SPARE_CONNECTIONS 16   /* 1/16 of the connections is reserved for those being closed */
#define CHECK_US	  4000 /* interval of checking whether requests still have to wait */

struct server {
	struct MHD_Daemon *mhd;
	struct routes_ctx routes;
	struct sd_event_source *io, *timer, *drain_timer;
	struct sd_event_source *look;  /* timer, while requests wait */
	struct sd_event_source *sweep; /* timer, while there are connections */
	struct sessions_listener listener;
	struct places places;
	uint64_t timeout_ns;
	size_t least_rate;
	struct conn *waiting;
	size_t answering; /* requests whose response is not completely sent */
	void (*drained)(void *ctx);
	void *drained_ctx;
};

struct conn {
	struct place place; /* must be first: conn_at() */
	struct server *srv;
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
	struct conn *next; /* next waiting connection */
};

static void deadlines_soon(struct server *srv)
{
	(void)sd_event_source_set_time_relative(srv->sweep, DEADLINES_US);
	(void)sd_event_source_set_enabled(srv->sweep, SD_EVENT_ONESHOT);
}

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

static void conn_enter(struct conn *c, int fd)
{
	struct server *srv = c->srv;
	struct place *out;

	c->fd = fd;
	(void)peer_get(fd, srv->routes.readers, &c->peer); /* unknown: no permissions */
	c->place.uid = c->peer.uid;
	conn_reset(c);
	out = places_enter(&srv->places, &c->place);
	if (out)
		conn_drop(conn_at(out), &srv->routes.dropped.crowded);
	deadlines_soon(srv);
}

/* Enforce deadlines for requests and for reading responses, however slowly data arrives. */
static int on_deadlines(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	struct server *srv = userdata;
	struct dropped_clients *counts = &srv->routes.dropped;
	uint64_t now = clock_monotonic_ns();

	(void)source, (void)usec;
	for (struct place *p = srv->places.first; p; p = p->next) {
		struct conn *c = conn_at(p);

		if (c->due_ns && now > c->due_ns && !p->dropped)
			conn_drop(c, p->answering ? &counts->unread : &counts->late);
	}
	if (srv->places.first)
		deadlines_soon(srv);
	return 0;
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

static enum MHD_Result send_too_large(struct conn *c, struct MHD_Connection *connection)
{
	struct response rs;
	struct diag diag = {0};
	enum MHD_Result sent;

	response_init(&rs);
	diag_set(&diag, -EMSGSIZE, PYP_EXIT_USAGE, "send a smaller one",
		 "the body is larger than %d bytes", REQUEST_BODY_MAX);
	response_set_error(&rs, 413, &diag, -EMSGSIZE);
	sent = send_response(c, connection, &rs);
	response_deinit(&rs);
	return sent;
}

static void check_soon(struct server *srv)
{
	(void)sd_event_source_set_time_relative(srv->look, CHECK_US);
	(void)sd_event_source_set_enabled(srv->look, SD_EVENT_ONESHOT);
}

/* libmicrohttpd calls on_request() again when the connection is resumed. */
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
	check_soon(c->srv);
	return MHD_YES;
}

/* Closed connections end at once, except while their profile is being written. */
static bool wait_is_over(const struct server *srv, const struct conn *c)
{
	return (c->place.dropped && c->wait.what != WAIT_RENDERED) ||
	       routes_ready(&srv->routes, &c->wait, c->since_ns);
}

/* Resume connections whose wait is over, or all. */
static bool resume(struct server *srv, bool all)
{
	bool any = false;

	for (struct conn **at = &srv->waiting; *at;) {
		struct conn *c = *at;

		if (!all && !wait_is_over(srv, c)) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		MHD_resume_connection(TAKE_PTR(c->suspended));
		any = true;
	}
	return any;
}

static enum MHD_Result answer(struct conn *c, struct MHD_Connection *connection, const char *method)
{
	struct routes_input in = {.peer = c->peer,
				  .method = method,
				  .uri = c->uri,
				  .body = c->body ? c->body : "",
				  .nbody = c->nbody,
				  .accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
									MHD_HTTP_HEADER_ACCEPT)};
	struct routes_wait wait;
	struct response rs;
	enum MHD_Result sent;

	if (!c->since_ns)
		c->since_ns = clock_monotonic_ns();
	in.since_ns = c->since_ns;
	in.waited = c->wait.what;
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

static enum MHD_Result begin(struct conn *c, struct MHD_Connection *connection)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);
	uint64_t n;

	c->started = true;
	c->srv->answering++;
	if (length && parse_u64(length, 0, REQUEST_BODY_MAX, &n) < 0)
		return send_too_large(c, connection); /* the body is never read */
	return MHD_YES;
}

static enum MHD_Result receive(struct conn *c, const char *data, size_t n)
{
	if (c->nbody + n <= REQUEST_BODY_MAX) {
		char *body = realloc(c->body, c->nbody + n);

		if (!body)
			return MHD_NO;
		memcpy(body + c->nbody, data, n);
		c->body = body;
	}
	c->nbody += n;
	return c->nbody > DISCARD_MAX ? MHD_NO : MHD_YES;
}

/* Called when the headers are complete, for each piece of the body, and at the end. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
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
	if (c->nbody > REQUEST_BODY_MAX)
		return send_too_large(c, connection);
	return answer(c, connection, method);
}

/* The only callback that gets the URL before decoding. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
	struct conn *c = conn_of(connection);

	(void)cls;
	if (c) {
		free(c->uri);
		c->uri = strdup(uri);
	}
	return c;
}

/* Waits until the profile being written is sent; there is only one, of limited size. */
static int on_drained(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	struct server *srv = userdata;

	(void)usec;
	if (srv->routes.render) {
		(void)sd_event_source_set_time_relative(source, DRAIN_US);
		return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	}
	(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	srv->drained(srv->drained_ctx);
	return 0;
}

/* Clients can still fetch the rest of timelines. */
static void drain_check(struct server *srv)
{
	struct sessions_timeline_status st;

	if (srv->drain_timer && !srv->answering &&
	    !sessions_timeline_status(srv->routes.sessions, 0, &st))
		(void)sd_event_source_set_time(srv->drain_timer, 0);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
			 enum MHD_RequestTerminationCode code)
{
	struct server *srv = cls;
	struct conn *c = conn_of(connection);

	(void)con_cls;
	/* a timeout while sending means that the client does not read */
	if (c && code == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED && !c->place.dropped)
		++*(c->place.answering ? &srv->routes.dropped.unread : &srv->routes.dropped.late);
	if (c)
		conn_reset(c);
	drain_check(srv);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
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
		c->srv = cls;
		conn_enter(c, info->connect_fd);
	} else if (c) {
		places_leave(&c->srv->places, &c->place);
		conn_reset(c);
		free(c);
		*socket_context = NULL;
	}
}

/* --- the event loop --- */

static int set_timer(struct server *srv)
{
	MHD_UNSIGNED_LONG_LONG ms;
	int r;

	if (MHD_get_timeout(srv->mhd, &ms) != MHD_YES)
		return sd_event_source_set_enabled(srv->timer, SD_EVENT_OFF);
	r = sd_event_source_set_time_relative(srv->timer, (uint64_t)ms * 1000);
	return r < 0 ? r : sd_event_source_set_enabled(srv->timer, SD_EVENT_ONESHOT);
}

static unsigned int connections(struct server *srv)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(srv->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

	return info ? info->num_connections : 0;
}

static int run(struct server *srv)
{
	unsigned int before;

	/*
	 * At its connection limit, libmicrohttpd stops listening, and resumes only at the start of
	 * a later run, which nothing would trigger.
	 */
	do {
		before = connections(srv);
		if (MHD_run(srv->mhd) != MHD_YES)
			log_error("the control socket's server failed");
	} while (connections(srv) < before);
	return set_timer(srv);
}

static int on_io(struct sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	(void)source, (void)fd, (void)revents;
	return run(userdata);
}

static int on_timer(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source, (void)usec;
	return run(userdata);
}

/*
 * Rings may have been read, costs measured or a profile written. The second round processes
 * requests that waited for the renderer, which the first round has released, before new requests.
 */
static int on_check(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	struct server *srv = userdata;
	int r = 0;

	(void)source, (void)usec;
	for (int round = 0; round < 2 && r >= 0 && resume(srv, false); round++)
		r = run(srv);
	if (srv->waiting)
		check_soon(srv);
	return r;
}

/* Check waiting requests soon, but not now, because a handler may be running. */
static void check_now(void *ctx)
{
	struct server *srv = ctx;

	(void)sd_event_source_set_time_relative(srv->look, 0);
	(void)sd_event_source_set_enabled(srv->look, SD_EVENT_ONESHOT);
}

static int add_sources(struct server *srv, struct sd_event *event)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(srv->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	int r;

	if (!info)
		return -ENOTSUP;
	r = sd_event_add_io(event, &srv->io, info->epoll_fd, EPOLLIN, on_io, srv);
	if (r < 0)
		return r;
	r = sd_event_add_time_relative(event, &srv->timer, CLOCK_MONOTONIC, 0, 1, on_timer, srv);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &srv->look, CLOCK_MONOTONIC, 0, 1, on_check,
					       srv);
	if (r >= 0)
		r = sd_event_source_set_enabled(srv->look, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &srv->sweep, CLOCK_MONOTONIC, DEADLINES_US,
					       1000, on_deadlines, srv);
	return r < 0 ? r : 0;
}

/* --- start and end --- */

static void log_mhd(void *cls, const char *fmt, va_list ap)
{
	char line[256];

	(void)cls;
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	log_debug("http: %s", line);
}

static struct MHD_Daemon *start_mhd(struct server *srv, int fd, const struct server_opts *opts)
{
	unsigned int timeout = opts->timeout_s ? opts->timeout_s : DEFAULT_TIMEOUT_S;
	unsigned int max = opts->max_connections ? opts->max_connections : DEFAULT_CONNECTIONS;

	srv->places.max = max - max / SPARE_CONNECTIONS;
	srv->places.owner = opts->routes.owner;
	srv->timeout_ns = timeout * CLOCK_NS_PER_S;
	srv->least_rate = opts->least_rate ? opts->least_rate : DEFAULT_LEAST_RATE;

	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0,
				NULL, NULL, on_request, srv, MHD_OPTION_EXTERNAL_LOGGER, log_mhd,
				NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				max, MHD_OPTION_CONNECTION_TIMEOUT, timeout + LATER_S,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
				MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_NOTIFY_CONNECTION,
				on_connection, srv, MHD_OPTION_NOTIFY_COMPLETED, on_completed, srv,
				MHD_OPTION_URI_LOG_CALLBACK, on_uri, srv, MHD_OPTION_END);
}

int server_new(struct sd_event *event, int listen_fd, const struct server_opts *opts,
	       struct server **ret, struct diag *diag)
{
	_cleanup_(server_freep) struct server *srv = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	srv = calloc(1, sizeof(*srv));
	if (!srv)
		return -ENOMEM;
	srv->routes = opts->routes;
	fd = fcntl(listen_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return diag_errno(diag, errno, "cannot use the control socket");
	srv->mhd = start_mhd(srv, fd, opts);
	if (!srv->mhd)
		return diag_set(diag, -EIO, PYP_EXIT_FAILURE, "run with -v for details",
				"cannot serve the control socket");
	(void)TAKE_FD(fd); /* libmicrohttpd closes it */
	r = add_sources(srv, event);
	if (r < 0)
		return diag_errno(diag, -r, "cannot serve the control socket");
	srv->listener = (struct sessions_listener){.looked = check_now, .ctx = srv};
	sessions_listen(srv->routes.sessions, &srv->listener);
	*ret = TAKE_PTR(srv);
	return 0;
}

void server_started(struct server *srv)
{
	srv->routes.starting = false;
	check_now(srv);
}

void server_refuse(struct server *srv)
{
	srv->routes.draining = true;
	sessions_cancel_attaching(srv->routes.sessions);
	check_now(srv);
}

int server_drain(struct server *srv, void (*done)(void *ctx), void *ctx)
{
	int r;

	if (srv->drain_timer)
		return 0;
	server_refuse(srv);
	srv->routes.stopped = true;
	sessions_timelines_end(srv->routes.sessions);
	srv->drained = done;
	srv->drained_ctx = ctx;
	r = sd_event_add_time_relative(sd_event_source_get_event(srv->io), &srv->drain_timer,
				       CLOCK_MONOTONIC, DRAIN_US, 1, on_drained, srv);
	drain_check(srv);
	return r < 0 ? r : 0;
}

void server_free(struct server *srv)
{
	if (!srv)
		return;
	sessions_unlisten(srv->routes.sessions, &srv->listener);
	sd_event_source_disable_unref(srv->io);
	sd_event_source_disable_unref(srv->timer);
	sd_event_source_disable_unref(srv->drain_timer);
	if (srv->mhd && srv->waiting) {
		srv->routes.draining = true; /* waiting requests get a 503 */
		resume(srv, true);
		(void)MHD_run(srv->mhd);
	}
	sd_event_source_disable_unref(srv->look);
	srv->sweep = sd_event_source_disable_unref(srv->sweep);
	srv->drain_timer = NULL; /* closing connections completes requests */
	if (srv->mhd)
		MHD_stop_daemon(srv->mhd);
	marks_deinit(&srv->routes.marks);
	marks_deinit(&srv->routes.reader_marks);
	free(srv);
}
