/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP client for the control API of one daemon. Each failure sets a diagnosis with the documented
 * exit code: 6 for no daemon, 4 for no permission, else the code from the daemon's error.
 *
 * The client sends nothing to a server that does not run as root or as this process's effective
 * user; such requests fail with exit code 4.
 */
#ifndef PYPROFCTL_CLIENT_H
#define PYPROFCTL_CLIENT_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct client;

int client_open(const char *socket, struct client **ret, struct diag *diag);
void client_free(struct client *c);
DEFINE_FREEP(struct client, client_free)

/* Timeout of each request in seconds. The default is 300, as attaching can include a self-test. */
void client_set_timeout(struct client *c, long seconds);

/* Requests fail with -ECANCELED within about a second after *cancel has become true. Borrowed. */
void client_set_cancel(struct client *c, const atomic_bool *cancel);

/* Send a request and parse the JSON response. body: borrowed, NULL: none. ret: new reference, may
 * be NULL. */
int client_request(struct client *c, const char *method, const char *path, const json_t *body,
		   json_t **ret, struct diag *diag);

/* Detach from a target: the daemon forgets its data. */
int client_detach(struct client *c, pid_t pid, struct diag *diag);

/* The error body of the latest response as JSON; NULL: no error. Borrowed. */
const json_t *client_last_error(const struct client *c);

/* Send a GET request and copy the response to out. On an error response nothing is written. */
int client_download(struct client *c, const char *path, FILE *out, struct diag *diag);

/* Send a GET request. *ret is owned by the caller; NULL: the response is empty. */
int client_fetch(struct client *c, const char *path, char **ret, size_t *ret_n, struct diag *diag);

/* A response with any status; body is owned, NULL: empty */
struct client_answer {
	long status;
	char *body;
	size_t n;
};

/* Send a request as it is; body: JSON text, NULL: none. An error means that there is no response. */
int client_forward(struct client *c, const char *method, const char *path, const char *body,
		   struct client_answer *ret, struct diag *diag);

/* Append "?key=value" or "&key=value", escaped. Frees path; the result is owned. NULL: out of
 * memory. */
char *client_add_param(struct client *c, char *path, const char *key, const char *value);

/* Set the diagnosis from a daemon's error body. Pure. */
int client_error(long status, const char *body, size_t n, struct diag *diag);

/* Wait a few seconds until the socket refuses connections. -ETIMEDOUT: it still accepts them. */
int client_wait_closed(const struct client *c, struct diag *diag);

#endif
