// SPDX-License-Identifier: BSD-2-Clause
/* The live page's HTTP server, using libmicrohttpd: see ui_server.h. */
#include "ui_server.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "ui_access.h"
#include "ui_answers.h"

#define CONNECTIONS	  32
#define CONNECTION_MEMORY (32 * 1024)
#define TIMEOUT_S	  60 /* of an idle connection */
#define LATE_NS		  (10 * CLOCK_NS_PER_S)
#define LEAST_RATE	  (64 * 1024) /* bytes per second, for reading a response */
#define DISCARD_MAX	  (1 << 20)   /* bytes of a body that is too large */

/* A connection, and its present request */
struct conn {
	struct conn *next;
	int fd;
	uint64_t due_ns; /* close it after this time; 0: never, the answer is being made */
	char *uri;
	char *body;
	size_t nbody;
	bool started;
};

struct ui_server {
	struct MHD_Daemon *mhd;
	const char *socket;
	struct ui_access access;
	char url[96];
	atomic_bool ending;
	pthread_mutex_t lock; /* of conns, and each one's due_ns */
	struct conn *conns;
};

/* --- connections --- */

static void set_due(struct ui_server *s, struct conn *c, uint64_t due_ns)
{
	pthread_mutex_lock(&s->lock);
	c->due_ns = due_ns;
	pthread_mutex_unlock(&s->lock);
}

void ui_server_sweep(struct ui_server *s)
{
	const uint64_t now = clock_monotonic_ns();

	pthread_mutex_lock(&s->lock);
	for (struct conn *c = s->conns; c; c = c->next)
		if (c->due_ns && now > c->due_ns)
			shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_unlock(&s->lock);
}

static void conn_reset(struct conn *c)
{
	free(c->uri);
	free(c->body);
	c->uri = c->body = NULL;
	c->nbody = 0;
	c->started = false;
}

static struct conn *conn_add(struct ui_server *s, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = fd;
	c->due_ns = clock_monotonic_ns() + LATE_NS;
	pthread_mutex_lock(&s->lock);
	c->next = s->conns;
	s->conns = c;
	pthread_mutex_unlock(&s->lock);
	return c;
}

static void conn_remove(struct ui_server *s, struct conn *c)
{
	pthread_mutex_lock(&s->lock);
	for (struct conn **at = &s->conns; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	pthread_mutex_unlock(&s->lock);
	conn_reset(c);
	free(c);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct conn *c = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		*context = info ? conn_add(cls, info->connect_fd) : NULL;
	else if (c)
		conn_remove(cls, c);
}

static struct conn *conn_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* --- one request --- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static void add_headers(struct MHD_Response *mr, const struct ui_response *rs)
{
	static const char *const headers[][2] = {
		{"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
	};
	char *policy = NULL;

	MHD_add_response_header(mr, MHD_HTTP_HEADER_CONTENT_TYPE, rs->mime);
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		MHD_add_response_header(mr, headers[i][0], headers[i][1]);
	if (rs->policy)
		policy = strndup(rs->policy, rs->npolicy);
	MHD_add_response_header(mr, "Content-Security-Policy",
				policy ? policy : "default-src 'none'; frame-ancestors 'none'");
	free(policy);
}

static enum MHD_Result respond(struct ui_server *s, struct conn *c,
			       struct MHD_Connection *connection, struct ui_response *rs)
{
	struct MHD_Response *mr;
	enum MHD_Result sent;

	if (rs->page)
		mr = MHD_create_response_from_buffer(rs->n, (void *)(uintptr_t)rs->page,
						     MHD_RESPMEM_PERSISTENT);
	else
		mr = MHD_create_response_from_buffer(rs->n, rs->body ? rs->body : (char *)"",
						     rs->body ? MHD_RESPMEM_MUST_FREE
							      : MHD_RESPMEM_PERSISTENT);
	if (!mr) {
		free(rs->body);
		return MHD_NO;
	}
	add_headers(mr, rs);
	set_due(s, c, clock_monotonic_ns() + LATE_NS + rs->n * CLOCK_NS_PER_S / LEAST_RATE);
	sent = MHD_queue_response(connection, rs->status, mr);
	MHD_destroy_response(mr);
	return sent;
}

static int check(const struct ui_server *s, struct MHD_Connection *connection, const char *uri,
		 bool page, struct diag *diag)
{
	const char *query = strchr(uri, '?');
	const struct ui_asked asked = {.host = header(connection, "Host"),
				       .origin = header(connection, "Origin"),
				       .site = header(connection, "Sec-Fetch-Site"),
				       .token = header(connection, UI_TOKEN_HEADER),
				       .query = query ? query + 1 : NULL,
				       .page = page};

	return ui_access_check(&s->access, &asked, diag);
}

/* Refused requests learn nothing about paths. */
static void answer(const struct ui_server *s, struct MHD_Connection *connection, const char *method,
		   const struct conn *c, struct ui_response *rs)
{
	const struct ui_wanted wanted = {.socket = s->socket,
					 .uri = c->uri,
					 .body = c->body ? c->body : "",
					 .cancel = &s->ending};
	struct diag diag = {0}, denied = {0};
	struct ui_wanted q = wanted;
	unsigned int status = 0;

	q.route = ui_route_find(method, c->uri, &status, &diag);
	if (check(s, connection, c->uri, q.route && q.route->answer == UI_PAGE, &denied) < 0)
		ui_answer_error(rs, 403, &denied);
	else if (!q.route)
		ui_answer_error(rs, status, &diag);
	else
		ui_answer(&q, rs);
}

static enum MHD_Result refuse(struct ui_server *s, struct conn *c,
			      struct MHD_Connection *connection, unsigned int status,
			      const char *why)
{
	struct ui_response rs = {0};
	struct diag diag = {0};

	diag_set(&diag, -EMSGSIZE, PYP_EXIT_USAGE, "send a smaller one", "%s", why);
	ui_answer_error(&rs, status, &diag);
	return respond(s, c, connection, &rs);
}

static enum MHD_Result receive(struct conn *c, const char *data, size_t n)
{
	if (c->nbody + n <= UI_BODY_MAX) {
		char *body = realloc(c->body, c->nbody + n + 1);

		if (!body)
			return MHD_NO;
		memcpy(body + c->nbody, data, n);
		body[c->nbody + n] = '\0';
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
	struct ui_response rs = {0};
	struct ui_server *s = cls;
	enum MHD_Result r;

	(void)url, (void)version, (void)con_cls;
	if (!c || !c->uri)
		return MHD_NO;
	if (!c->started) {
		c->started = true;
		return MHD_YES;
	}
	if (*size) {
		r = receive(c, data, *size);
		*size = 0;
		return r;
	}
	if (c->nbody > UI_BODY_MAX)
		return refuse(s, c, connection, 413, "the body is too large");
	if (strlen(c->uri) > UI_URI_MAX)
		return refuse(s, c, connection, 414, "the URL is too long");
	set_due(s, c, 0);
	answer(s, connection, method, c, &rs);
	return respond(s, c, connection, &rs);
}

/* The only callback that gets the URL before decoding; also the start of a request. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
	struct conn *c = conn_of(connection);

	if (c) {
		conn_reset(c);
		c->uri = strdup(uri);
		set_due(cls, c, clock_monotonic_ns() + LATE_NS);
	}
	return c;
}

/* The connection stays for the next request; libmicrohttpd closes it when it has been idle. */
static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
			 enum MHD_RequestTerminationCode code)
{
	struct conn *c = conn_of(connection);

	(void)con_cls, (void)code;
	if (!c)
		return;
	conn_reset(c);
	set_due(cls, c, clock_monotonic_ns() + TIMEOUT_S * CLOCK_NS_PER_S);
}

/* --- start and end --- */

static int listen_local(uint16_t port, int *ret, uint16_t *ret_port, struct diag *diag)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_port = htons(port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(addr);
	const int on = 1;

	if (fd < 0)
		return diag_errno(diag, errno, "cannot create a socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, CONNECTIONS) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &n) < 0)
		return diag_errno(diag, errno, "cannot listen at 127.0.0.1:%u", port);
	*ret_port = ntohs(addr.sin_port);
	*ret = TAKE_FD(fd);
	return 0;
}

static void log_nothing(void *cls, const char *fmt, va_list ap)
{
	(void)cls, (void)fmt, (void)ap;
}

static struct MHD_Daemon *start_mhd(struct ui_server *s, int fd)
{
	return MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
					MHD_USE_POLL | MHD_USE_ERROR_LOG,
				0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER,
				log_nothing, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
				MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)TIMEOUT_S,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
				MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_NOTIFY_CONNECTION,
				on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
				MHD_OPTION_URI_LOG_CALLBACK, on_uri, s, MHD_OPTION_END);
}

int ui_server_new(const char *socket, uint16_t port, struct ui_server **ret, struct diag *diag)
{
	_cleanup_(ui_server_freep) struct ui_server *s = calloc(1, sizeof(*s));
	_cleanup_close_ int fd = -1;
	uint16_t actual = 0;
	int r;

	if (!s)
		return diag_errno(diag, ENOMEM, "cannot serve the page");
	pthread_mutex_init(&s->lock, NULL);
	s->socket = socket;
	r = listen_local(port, &fd, &actual, diag);
	if (r == 0)
		r = ui_access_init(&s->access, actual, diag);
	if (r < 0)
		return r;
	curl_global_init(CURL_GLOBAL_DEFAULT); /* before there are several threads */
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u/?token=%s", actual, s->access.token);
	s->mhd = start_mhd(s, fd);
	if (!s->mhd)
		return diag_set(diag, -EIO, PYP_EXIT_FAILURE, "", "cannot serve the page");
	(void)TAKE_FD(fd); /* libmicrohttpd closes it */
	*ret = TAKE_PTR(s);
	return 0;
}

const char *ui_server_url(const struct ui_server *s)
{
	return s->url;
}

void ui_server_free(struct ui_server *s)
{
	if (!s)
		return;
	atomic_store(&s->ending, true);
	if (s->mhd)
		MHD_stop_daemon(s->mhd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
