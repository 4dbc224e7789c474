/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of the control API: one daemon at one socket. Every failure ends up as a diagnosis with
 * the exit code that the command line contract gives it: no daemon 6, no permission 4, and what the
 * daemon itself says.
 *
 * Each connection's peer is checked before a byte is sent: it must run as root or as this process's
 * effective user, else the request fails with exit code 4.
 */
#ifndef PYPROFCTL_CLIENT_H
#define PYPROFCTL_CLIENT_H

#include <jansson.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct client;

int client_open(const char *socket, struct client **ret, struct diag *diag);
void client_free(struct client *c);
DEFINE_FREEP(struct client, client_free)

/* Seconds that a request may take; default 300 (attaching can include a check of the interpreter). */
void client_set_timeout(struct client *c, long seconds);

/* Send body (borrowed; NULL: none), receive JSON. ret (new reference) may be NULL. */
int client_request(struct client *c, const char *method, const char *path, const json_t *body,
		   json_t **ret, struct diag *diag);

/* The error that the daemon answered the last request with, as JSON; NULL: none. Borrowed. */
const json_t *client_last_error(const struct client *c);

/* GET, and stream what comes to out. Nothing is written to out if the daemon answers an error. */
int client_download(struct client *c, const char *path, FILE *out, struct diag *diag);

/* GET into memory. Owned; NULL: the answer is empty. */
int client_fetch(struct client *c, const char *path, char **ret, size_t *ret_n, struct diag *diag);

/* Append "?key=value" or "&key=value", escaped, to a path. Owned; path is freed. NULL: no memory. */
char *client_add_param(struct client *c, char *path, const char *key, const char *value);

/* The diagnosis in an error body of the daemon. Pure. */
int client_error(long status, const char *body, size_t n, struct diag *diag);

/* Wait until nobody listens at the socket any more, for a few seconds. */
int client_wait_gone(const struct client *c, struct diag *diag);

#endif
