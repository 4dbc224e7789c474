// SPDX-License-Identifier: BSD-2-Clause
/*
 * The HTTP server's sockets and its part of the event loop: see server.h.
 *
 * libmicrohttpd keeps its sockets in an epoll set, whose descriptor is a source of the event loop;
 * a timer implements MHD_get_timeout(), and is set after each MHD_run(). There is one of each for the
 * control socket and for the HTTP listener; requests of both wait in one list.
 */
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/server_priv.h"

#define DEFAULT_TIMEOUT_S   10
#define DEFAULT_CONNECTIONS 64
#define HTTP_CONNECTIONS    32
#define DEFAULT_LEAST_RATE  (64 * 1024)
#define LATER_S                                                                                    \
	2			      /* added to libmicrohttpd's timeout, so that ours, which is
			       * counted, comes first */
#define CONNECTION_MEMORY (32 * 1024) /* request line, headers, and one buffer of body */
#define DRAIN_US	  (1000 * 1000)
#define DEADLINES_US	  (1000 * 1000)
#define SPARE_CONNECTIONS 16 /* 1/16 of the connections is reserved for those being closed */
#define TLS_PRIORITIES	  "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

static const char *name_of(const struct port *p)
{
	return p->access ? "HTTP listener" : "control socket";
}

/* --- the event loop --- */

static int set_timer(struct port *p)
{
	MHD_UNSIGNED_LONG_LONG ms;
	int r;

	if (MHD_get_timeout(p->mhd, &ms) != MHD_YES)
		return sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
	r = sd_event_source_set_time_relative(p->timer, (uint64_t)ms * 1000);
	return r < 0 ? r : sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

static unsigned int connections(struct port *p)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(p->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

	return info ? info->num_connections : 0;
}

static int run(struct port *p)
{
	unsigned int before;

	if (!p->mhd)
		return 0;
	/*
	 * At its connection limit, libmicrohttpd stops listening, and resumes only at the start of
	 * a later run, which nothing would trigger.
	 */
	do {
		before = connections(p);
		if (MHD_run(p->mhd) != MHD_YES)
			log_error("the server of the %s failed", name_of(p));
	} while (connections(p) < before);
	return set_timer(p);
}

static int run_all(struct server *srv)
{
	int r = run(&srv->control);

	return r < 0 ? r : run(&srv->http);
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

static int on_deadlines(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	server_check_deadlines(userdata, usec * 1000);
	return 0;
}

void server_deadlines_soon(struct server *srv)
{
	int enabled;

	/* New connections do not put off the check of the others. */
	if (sd_event_source_get_enabled(srv->sweep, &enabled) > 0)
		return;
	(void)sd_event_source_set_time_relative(srv->sweep, DEADLINES_US);
	(void)sd_event_source_set_enabled(srv->sweep, SD_EVENT_ONESHOT);
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
	for (int round = 0; round < 2 && r >= 0 && server_resume(srv, false); round++)
		r = run_all(srv);
	server_check_soon(srv);
	return r;
}

/* Check waiting requests soon, but not now, because a handler may be running. */
static void check_now(void *ctx)
{
	struct server *srv = ctx;

	(void)sd_event_source_set_time_relative(srv->look, 0);
	(void)sd_event_source_set_enabled(srv->look, SD_EVENT_ONESHOT);
}

/* Reading rings comes before what scrapers want, as they may be many. */
static int add_port(struct port *p, struct sd_event *event)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(p->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	int r;

	if (!info)
		return -ENOTSUP;
	r = sd_event_add_io(event, &p->io, info->epoll_fd, EPOLLIN, on_io, p);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &p->timer, CLOCK_MONOTONIC, 0, 1, on_timer,
					       p);
	if (r >= 0 && p->access)
		r = sd_event_source_set_priority(p->io, SD_EVENT_PRIORITY_IDLE);
	return r < 0 ? r : 0;
}

static int add_timers(struct server *srv, struct sd_event *event)
{
	int r = sd_event_add_time_relative(event, &srv->look, CLOCK_MONOTONIC, 0, 1, on_check, srv);

	if (r >= 0)
		r = sd_event_source_set_enabled(srv->look, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &srv->sweep, CLOCK_MONOTONIC, DEADLINES_US,
					       1000, on_deadlines, srv);
	return r < 0 ? r : 0;
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

/* --- start and end --- */

static void log_mhd(void *cls, const char *fmt, va_list ap)
{
	char line[256];

	(void)cls;
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	log_debug("http: %s", line);
}

static struct MHD_Daemon *start_mhd(struct port *p, int fd, unsigned int timeout, unsigned int max,
				    const struct http_listener *tls)
{
	const struct MHD_OptionItem options[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, tls ? tls->cert : NULL},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, tls ? tls->key : NULL},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)TLS_PRIORITIES},
		{MHD_OPTION_END, 0, NULL},
	};
	const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME |
					(tls ? MHD_USE_TLS : 0),
				0, NULL, NULL, server_on_request, p, MHD_OPTION_EXTERNAL_LOGGER,
				log_mhd, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
				MHD_OPTION_CONNECTION_LIMIT, max, MHD_OPTION_CONNECTION_TIMEOUT,
				timeout + LATER_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				(size_t)CONNECTION_MEMORY, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
				MHD_OPTION_NOTIFY_CONNECTION, server_on_connection, p,
				MHD_OPTION_NOTIFY_COMPLETED, server_on_completed, p,
				MHD_OPTION_URI_LOG_CALLBACK, server_on_uri, p, MHD_OPTION_ARRAY,
				tls ? options : none, MHD_OPTION_END);
}

/* http: NULL for the control socket. */
static int open_port(struct port *p, int listen_fd, const struct server_opts *opts,
		     const struct http_listener *http, struct diag *diag)
{
	const bool tls = http && http->cert;
	_cleanup_close_ int fd = fcntl(listen_fd, F_DUPFD_CLOEXEC, 0);
	unsigned int timeout = opts->timeout_s ? opts->timeout_s : DEFAULT_TIMEOUT_S, max;

	p->access = http ? &http->access : NULL;
	if (fd < 0)
		return diag_errno(diag, errno, "cannot use the %s", name_of(p));
	max = http ? HTTP_CONNECTIONS : DEFAULT_CONNECTIONS;
	if (opts->max_connections)
		max = opts->max_connections;
	p->places = (struct places){.max = max - max / SPARE_CONNECTIONS,
				    .owner = opts->routes.owner,
				    .by_host = http != NULL};
	p->mhd = start_mhd(p, fd, timeout, max, tls ? http : NULL);
	if (!p->mhd)
		return diag_set(diag, -EIO, PYP_EXIT_FAILURE,
				tls ? "check that certificate and key are PEM files that belong "
				      "together; -v shows details"
				    : "run with -v for details",
				"cannot serve the %s", name_of(p));
	(void)TAKE_FD(fd); /* libmicrohttpd closes it */
	return 0;
}

static int open_ports(struct server *srv, int listen_fd, const struct server_opts *opts,
		      struct diag *diag)
{
	int r = open_port(&srv->control, listen_fd, opts, NULL, diag);

	if (r == 0 && opts->http)
		r = open_port(&srv->http, opts->http->fd, opts, opts->http, diag);
	return r;
}

int server_new(struct sd_event *event, int listen_fd, const struct server_opts *opts,
	       struct server **ret, struct diag *diag)
{
	_cleanup_(server_freep) struct server *srv = calloc(1, sizeof(*srv));
	int r;

	if (!srv)
		return -ENOMEM;
	srv->control.srv = srv->http.srv = srv;
	srv->routes = opts->routes;
	srv->routes.http = opts->http;
	srv->timeout_ns = (opts->timeout_s ? opts->timeout_s : DEFAULT_TIMEOUT_S) * CLOCK_NS_PER_S;
	srv->least_rate = opts->least_rate ? opts->least_rate : DEFAULT_LEAST_RATE;
	r = open_ports(srv, listen_fd, opts, diag);
	if (r < 0)
		return r;
	r = add_timers(srv, event);
	if (r == 0)
		r = add_port(&srv->control, event);
	if (r == 0 && opts->http)
		r = add_port(&srv->http, event);
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
	r = sd_event_add_time_relative(sd_event_source_get_event(srv->look), &srv->drain_timer,
				       CLOCK_MONOTONIC, DRAIN_US, 1, on_drained, srv);
	server_drain_check(srv);
	return r < 0 ? r : 0;
}

static void close_sources(struct port *p)
{
	p->io = sd_event_source_disable_unref(p->io);
	p->timer = sd_event_source_disable_unref(p->timer);
}

static void run_once(struct port *p)
{
	if (p->mhd)
		(void)MHD_run(p->mhd);
}

static void stop(struct port *p)
{
	if (p->mhd)
		MHD_stop_daemon(p->mhd);
}

void server_free(struct server *srv)
{
	if (!srv)
		return;
	sessions_unlisten(srv->routes.sessions, &srv->listener);
	close_sources(&srv->control);
	close_sources(&srv->http);
	sd_event_source_disable_unref(srv->drain_timer);
	if (srv->waiting) {
		srv->routes.draining = true; /* waiting requests get a 503 */
		server_resume(srv, true);
		run_once(&srv->control);
		run_once(&srv->http);
	}
	sd_event_source_disable_unref(srv->look);
	srv->sweep = sd_event_source_disable_unref(srv->sweep);
	srv->drain_timer = NULL; /* closing connections completes requests */
	stop(&srv->control);
	stop(&srv->http);
	spans_deinit(&srv->routes.spans);
	totals_deinit(&srv->routes.totals);
	marks_deinit(&srv->routes.marks);
	marks_deinit(&srv->routes.reader_marks);
	free(srv);
}
