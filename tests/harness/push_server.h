/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receiver of pushed profiles as a process: tests/harness/receiver.py, which checks each request and
 * answers as it is told.
 */
#ifndef PYPROF_TESTS_HARNESS_PUSH_SERVER_H
#define PYPROF_TESTS_HARNESS_PUSH_SERVER_H

#include <jansson.h>
#include <sys/types.h>

struct push_server {
	pid_t pid;
	int in, port;
	char log[128];
};

/* Start it with these arguments; see there. dir: where its log is made. */
void push_server_start(struct push_server *s, const char *dir, ...) __attribute__((sentinel));
void push_server_stop(struct push_server *s);

/* "KIND+PROTOCOL://127.0.0.1:PORT" */
const char *push_server_url(const struct push_server *s, const char *kind, char out[64]);

/* What was received so far: an array of objects, to be freed. */
json_t *push_server_log(const struct push_server *s);
/* The number of requests, and of different ids among those answered like this (NULL: any). */
size_t push_server_count(const struct push_server *s, const char *answer, size_t *ret_ids);
/* Fails the test if any request was not valid. */
void push_server_check(const struct push_server *s);

/* A certificate for 127.0.0.1 and its key, CERT.pem and CERT.key in dir, made by openssl. */
void push_server_certificate(const char *dir, const char *name);

#endif
