/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server on a socket of its own, and its clients: raw sockets in the same process. While they
 * wait, the event loop turns. The test includes fakes/sessions.c, where 42 is attached.
 */
#ifndef PYPROF_TESTS_HARNESS_SERVER_RIG_H
#define PYPROF_TESTS_HARNESS_SERVER_RIG_H

#include "server/server.h"

#define GET(uri)      "GET " uri " HTTP/1.1\r\nHost: x\r\n\r\n"
#define HTTP_GET(uri) "GET " uri " HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define POST_TARGET_7                                                                              \
	"POST /v1/targets HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{\"pid\": 7}"

struct server_rig {
	struct server_opts opts; /* set before the start */
	struct sd_event *event;
	struct sessions *sessions;
	struct server *server;
	struct control_socket *socket;
	struct http_listener_opts http_opts; /* set before the start; addr NULL: none */
	struct http_listener *http;
	char dir[64], path[96];
	int drained; /* how often the server has reported that */
};

extern struct server_rig rig;

void server_rig_start(unsigned int timeout_s, unsigned int max_connections);
/* Free all; fails if memory is leaked. */
void server_rig_stop(void);
/* Handle one event, or wait 10 ms for it. */
void server_rig_turn(void);
uint64_t server_rig_ms(void);

/* Drain the server, and wait until it is done. */
void server_rig_drain(void);
void server_rig_wait_drained(void);

/* A connection, which the caller closes. */
int server_rig_client(void);
/* Send all of it, turning the loop while the socket is full; stops when the server closes. */
void server_rig_put(int fd, const char *data, size_t n);
void server_rig_puts(int fd, const char *s);
/* The same to the HTTP listener. */
int server_rig_http_client(void);
/* A connection on which this was sent. */
int server_rig_request(const char *request);
int server_rig_http_request(const char *request);
/* One reply, or what came until the server closed; owned. eof (may be NULL): it did close. */
char *server_rig_get(int fd, bool *eof);
/* Fail unless the reply has this status; closes the connection. */
void server_rig_answered(int fd, int status);
/* Fail if there is a reply, or a part of one. */
void server_rig_unanswered(int fd);
/* A request on a connection of its own, which is closed. Returns the reply's status; *ret (may be
 * NULL) is the reply, owned. */
int server_rig_ask(const char *request, char **ret);
int server_rig_http_ask(const char *request, char **ret);

int reply_status(const char *reply);
/* The length of the reply at the start of buf, 0 if its head is incomplete. */
size_t reply_length(const char *buf);

#endif
