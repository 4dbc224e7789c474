// SPDX-License-Identifier: BSD-2-Clause
/* HTTP client for the control API, using libcurl: see client.h. */
#include "client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/sockpath.h"

#define BASE_URL       "http://pyprofd"
#define TIMEOUT_S      300L
#define ERROR_BODY_MAX (64 * 1024)
#define BODY_MAX       (64 * 1024 * 1024) /* for responses kept in memory, bytes */
#define CLOSED_TRIES   500
#define CLOSED_STEP_NS (10 * 1000 * 1000)

struct client {
	CURL *curl;
	struct sockaddr_un addr;
	long timeout_s;
	int fd;			   /* the latest connection's; owned by libcurl */
	int connect_err;	   /* errno; 0: connected, and the peer is trusted */
	bool untrusted;		   /* the peer is untrusted because */
	uid_t untrusted_uid;	   /* it runs as this user */
	const atomic_bool *cancel; /* NULL: never */
	json_t *error;		   /* error body of the latest response; NULL: no error */
};

/* Receives a response body: error bodies go to memory, others to the stream if there is one. */
struct sink {
	struct client *client;
	FILE *out;  /* NULL: keep in memory */
	char *body; /* owned */
	size_t n, max;
	int out_err; /* errno of the first failed write */
};

static int no_memory(struct diag *diag)
{
	return diag_errno(diag, ENOMEM, "cannot contact the daemon");
}

int client_open(const char *socket, struct client **ret, struct diag *diag)
{
	_cleanup_(client_freep) struct client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return no_memory(diag);
	r = sockpath_addr(socket, &c->addr, diag);
	if (r < 0)
		return r;
	c->timeout_s = TIMEOUT_S;
	c->curl = curl_easy_init();
	if (!c->curl)
		return no_memory(diag);
	*ret = TAKE_PTR(c);
	return 0;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->curl);
	json_decref(c->error);
	free(c);
}

void client_set_timeout(struct client *c, long seconds)
{
	c->timeout_s = seconds;
}

void client_set_cancel(struct client *c, const atomic_bool *cancel)
{
	c->cancel = cancel;
}

int client_detach(struct client *c, pid_t pid, struct diag *diag)
{
	char path[64];

	snprintf(path, sizeof(path), "/v1/targets/%d", (int)pid);
	return client_request(c, "DELETE", path, NULL, NULL, diag);
}

const json_t *client_last_error(const struct client *c)
{
	return c->error;
}

/* --- receiving --- */

static size_t sink_keep(struct sink *s, const char *data, size_t n)
{
	char *body;

	if (s->n + n > s->max)
		return 0;
	body = realloc(s->body, s->n + n);
	if (!body)
		return 0;
	memcpy(body + s->n, data, n);
	s->body = body;
	s->n += n;
	return n;
}

static size_t on_data(char *data, size_t size, size_t count, void *userdata)
{
	struct sink *s = userdata;
	long status = 0;

	curl_easy_getinfo(s->client->curl, CURLINFO_RESPONSE_CODE, &status);
	if (!s->out || status >= 300)
		return sink_keep(s, data, size * count);
	if (fwrite(data, size, count, s->out) == count)
		return size * count;
	s->out_err = errno ? errno : EIO;
	return 0;
}

/* --- connecting --- */

/*
 * Any user's server could listen at the socket. Trust only root's and those of the user of this
 * program. SO_PEERCRED gives the user that called listen(2).
 */
static int check_peer(struct client *c)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return errno;
	if (peer.uid == (uid_t)-1) /* not connected: the server's queue is full */
		return EAGAIN;
	if (peer.uid == 0 || peer.uid == geteuid())
		return 0;
	c->untrusted = true;
	c->untrusted_uid = peer.uid;
	return EPERM;
}

/* Creates the socket, to know its descriptor. */
static curl_socket_t on_open_socket(void *userdata, curlsocktype purpose,
				    struct curl_sockaddr *address)
{
	struct client *c = userdata;

	(void)purpose;
	c->fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	return c->fd < 0 ? CURL_SOCKET_BAD : c->fd;
}

/* libcurl calls this for each new or reused connection, before it sends the request. */
static int on_connected(void *userdata, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
	struct client *c = userdata;

	(void)peer_ip, (void)own_ip, (void)peer_port, (void)own_port;
	c->connect_err = check_peer(c);
	return c->connect_err ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* libcurl calls this about once a second, or more often. */
static int on_progress(void *userdata, curl_off_t dltotal, curl_off_t dlnow, curl_off_t ultotal,
		       curl_off_t ulnow)
{
	const struct client *c = userdata;

	(void)dltotal, (void)dlnow, (void)ultotal, (void)ulnow;
	return c->cancel && atomic_load(c->cancel);
}

/* --- errors --- */

static int connect_error(const struct client *c, int err, struct diag *diag)
{
	const char *path = c->addr.sun_path;

	if (c->untrusted)
		return diag_set(
			diag, -EPERM, PYP_EXIT_PERMISSION,
			"run pyprofctl as that user, or select another socket with --socket",
			"the socket '%s' is served by another user (uid %u); nothing was sent",
			path, c->untrusted_uid);
	if (err == EAGAIN)
		return diag_set(diag, -err, PYP_EXIT_FAILURE,
				"the daemon may be busy; try again, or check its log",
				"the daemon at '%s' accepts no more connections", path);
	if (err == EACCES || err == EPERM)
		return diag_set(diag, -err, PYP_EXIT_PERMISSION,
				"run as root or as the daemon's user",
				"no permission for the socket '%s': %s", path, strerror(err));
	return diag_set(diag, err ? -err : -ECONNREFUSED, PYP_EXIT_NO_DAEMON,
			"start pyprofd, or give its socket with --socket", "no daemon at '%s': %s",
			path, strerror(err ? err : ECONNREFUSED));
}

/* libcurl does not always report why connecting failed, so try connect(2) directly. */
static int connect_errno(const struct client *c)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return errno;
	return connect(fd, (const struct sockaddr *)&c->addr, sizeof(c->addr)) < 0 ? errno : 0;
}

static int transfer_error(const struct client *c, const struct sink *s, CURLcode code,
			  struct diag *diag)
{
	if (s->out_err)
		return diag_set(diag, -s->out_err, PYP_EXIT_FAILURE,
				"the daemon keeps the data; choose another file with -o",
				"cannot write the output: %s", strerror(s->out_err));
	if (code == CURLE_COULDNT_CONNECT)
		return connect_error(c, connect_errno(c), diag);
	if (c->connect_err)
		return connect_error(c, c->connect_err, diag);
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return diag_set(diag, -ECANCELED, PYP_EXIT_FAILURE, "",
				"the request was cancelled");
	if (code == CURLE_OPERATION_TIMEDOUT)
		return diag_set(diag, -ETIMEDOUT, PYP_EXIT_FAILURE,
				"the daemon may be busy; try again, or check its log",
				"the daemon at '%s' did not answer in %ld s", c->addr.sun_path,
				c->timeout_s);
	return diag_set(diag, -EIO, PYP_EXIT_FAILURE, "check the daemon's log",
			"communication with the daemon at '%s' failed: %s", c->addr.sun_path,
			curl_easy_strerror(code));
}

static enum pyp_exit exit_of_status(long status)
{
	switch (status) {
	case 400:
		return PYP_EXIT_USAGE;
	case 403:
		return PYP_EXIT_PERMISSION;
	case 409:
		return PYP_EXIT_BUSY;
	case 422:
		return PYP_EXIT_UNTRACEABLE;
	case 503:
		return PYP_EXIT_NO_DAEMON;
	default:
		return PYP_EXIT_FAILURE;
	}
}

int client_error(long status, const char *body, size_t n, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *root = json_loadb(body ? body : "", n, 0, NULL);
	json_t *code = json_object_get(root, "code");
	const char *msg = json_string_value(json_object_get(root, "message"));
	const char *hint = json_string_value(json_object_get(root, "hint"));
	json_int_t exit = json_integer_value(code);

	if (!msg || exit < PYP_EXIT_FAILURE || exit > PYP_EXIT_BUSY)
		return diag_set(diag, -EIO, exit_of_status(status),
				"check that this is pyprofd's socket",
				"the daemon answered with HTTP status %ld", status);
	return diag_set(diag, -EREMOTEIO, (enum pyp_exit)exit, hint, "%s", msg);
}

/* --- requests --- */

/* If libcurl cannot check the peer (before 7.80), the request fails. */
static CURLcode set_socket_options(struct client *c)
{
	curl_easy_setopt(c->curl, CURLOPT_UNIX_SOCKET_PATH, c->addr.sun_path);
	curl_easy_setopt(c->curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
	curl_easy_setopt(c->curl, CURLOPT_OPENSOCKETDATA, c);
	curl_easy_setopt(c->curl, CURLOPT_PREREQDATA, c);
	curl_easy_setopt(c->curl, CURLOPT_MAXCONNECTS, 1L); /* so that fd is this connection's */
	c->connect_err = 0;
	c->untrusted = false;
	return curl_easy_setopt(c->curl, CURLOPT_PREREQFUNCTION, on_connected);
}

static CURLcode set_options(struct client *c, const char *method, const char *url,
			    struct sink *sink)
{
	curl_easy_reset(c->curl);
	curl_easy_setopt(c->curl, CURLOPT_URL, url);
	curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(c->curl, CURLOPT_PROXY, ""); /* ignore proxies from the environment */
	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, c->timeout_s);
	curl_easy_setopt(c->curl, CURLOPT_USERAGENT, "pyprofctl");
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, sink);
	if (c->cancel) {
		curl_easy_setopt(c->curl, CURLOPT_NOPROGRESS, 0L);
		curl_easy_setopt(c->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
		curl_easy_setopt(c->curl, CURLOPT_XFERINFODATA, c);
	}
	return set_socket_options(c);
}

static void slist_freep(struct curl_slist **list)
{
	curl_slist_free_all(*list);
}

/* One request and response with any status. body (JSON text) may be NULL. */
static int perform(struct client *c, const char *method, const char *path, const char *body,
		   struct sink *sink, long *ret_status, struct diag *diag)
{
	_cleanup_(slist_freep) struct curl_slist *headers = NULL;
	_cleanup_free_ char *url = NULL;
	CURLcode code;

	if (asprintf(&url, BASE_URL "%s", path) < 0) {
		url = NULL;
		return no_memory(diag);
	}
	code = set_options(c, method, url, sink);
	if (body) {
		headers = curl_slist_append(NULL, "Content-Type: application/json");
		curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
	}
	if (code == CURLE_OK)
		code = curl_easy_perform(c->curl);
	if (code != CURLE_OK)
		return transfer_error(c, sink, code, diag);
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, ret_status);
	return 0;
}

/* 0: the HTTP status means success. */
static int exchange(struct client *c, const char *method, const char *path, const char *body,
		    struct sink *sink, struct diag *diag)
{
	long status = 0;
	int r;

	json_decref(TAKE_PTR(c->error));
	r = perform(c, method, path, body, sink, &status, diag);
	if (r < 0 || status < 300)
		return r;
	c->error = json_loadb(sink->body ? sink->body : "", sink->n, 0, NULL);
	return client_error(status, sink->body, sink->n, diag);
}

int client_forward(struct client *c, const char *method, const char *path, const char *body,
		   struct client_answer *ret, struct diag *diag)
{
	struct sink sink = {.client = c, .max = BODY_MAX};
	long status = 0;
	int r;

	r = perform(c, method, path, body, &sink, &status, diag);
	if (r < 0) {
		free(sink.body);
		return r;
	}
	*ret = (struct client_answer){.status = status, .body = sink.body, .n = sink.n};
	return 0;
}

int client_request(struct client *c, const char *method, const char *path, const json_t *body,
		   json_t **ret, struct diag *diag)
{
	struct sink sink = {.client = c, .max = BODY_MAX};
	_cleanup_free_ char *text = NULL, *received = NULL;
	json_t *root;
	int r;

	text = body ? json_dumps(body, JSON_COMPACT) : strdup("");
	if (!text)
		return no_memory(diag);
	r = exchange(c, method, path, strcmp(method, "POST") == 0 ? text : NULL, &sink, diag);
	received = sink.body;
	if (r < 0)
		return r;
	root = json_loadb(received ? received : "", sink.n, 0, NULL);
	if (!root)
		return diag_set(diag, -EBADMSG, PYP_EXIT_FAILURE,
				"check that this is pyprofd's socket",
				"the daemon's response is not JSON");
	if (ret)
		*ret = root;
	else
		json_decref(root);
	return 0;
}

int client_download(struct client *c, const char *path, FILE *out, struct diag *diag)
{
	struct sink sink = {.client = c, .out = out, .max = ERROR_BODY_MAX};
	int r;

	r = exchange(c, "GET", path, NULL, &sink, diag);
	free(sink.body);
	return r;
}

int client_fetch(struct client *c, const char *path, char **ret, size_t *ret_n, struct diag *diag)
{
	struct sink sink = {.client = c, .max = BODY_MAX};
	int r;

	r = exchange(c, "GET", path, NULL, &sink, diag);
	if (r < 0) {
		free(sink.body);
		return r;
	}
	*ret = sink.body;
	*ret_n = sink.n;
	return 0;
}

char *client_add_param(struct client *c, char *path, const char *key, const char *value)
{
	char *escaped = path ? curl_easy_escape(c->curl, value, 0) : NULL;
	char *longer = NULL;

	if (escaped &&
	    asprintf(&longer, "%s%c%s=%s", path, strchr(path, '?') ? '&' : '?', key, escaped) < 0)
		longer = NULL;
	curl_free(escaped);
	free(path);
	return longer;
}

int client_wait_closed(const struct client *c, struct diag *diag)
{
	const struct timespec step = {.tv_nsec = CLOSED_STEP_NS};

	for (int i = 0; i < CLOSED_TRIES; i++) {
		if (connect_errno(c) != 0)
			return 0;
		nanosleep(&step, NULL);
	}
	return diag_set(diag, -ETIMEDOUT, PYP_EXIT_FAILURE, "check the daemon's log",
			"the daemon at '%s' is still running", c->addr.sun_path);
}
