/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One request of the control API as plain data: decoded path and parameters, whatever they came
 * from (the query string or a JSON body). Pure; all input is hostile. Everything is capped, and
 * nothing that is accepted contains a NUL or invalid percent-encoding.
 */
#ifndef PYPROF_SERVER_REQUEST_H
#define PYPROF_SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

#define REQUEST_URI_MAX	   8192
#define REQUEST_BODY_MAX   65536
#define REQUEST_PARAMS_MAX 64

struct request_param {
	const char *key, *value;
};

struct request {
	char *target; /* owned: path, keys and values lie in it */
	const char *path;
	struct request_param params[REQUEST_PARAMS_MAX];
	size_t nparams;
	char *body[REQUEST_PARAMS_MAX]; /* owned: what came from the body */
	size_t nbody;
	uint64_t since_ns; /* CLOCK_MONOTONIC: when it was received; 0: not known */
};

void request_init(struct request *rq);
void request_deinit(struct request *rq);

/* "/path?key=value&…". -ENAMETOOLONG: longer than REQUEST_URI_MAX; else exit code 2. */
int request_parse_target(struct request *rq, const char *uri, struct diag *diag);

/* A JSON object of strings, numbers and booleans: adds its members to the parameters. Blank: none. */
int request_parse_body(struct request *rq, const char *body, size_t n, struct diag *diag);

/* Every parameter must be in allowed (comma-separated, "": none is), and only `restrict` can be repeated. */
int request_check_params(const struct request *rq, const char *allowed, struct diag *diag);

/* The value, or NULL if it was not given. */
const char *request_get(const struct request *rq, const char *key);

/* These leave *ret alone if it was not given. Exit code 2 if the value is malformed. */
int request_get_pid(const struct request *rq, const char *key, pid_t *ret, struct diag *diag);
int request_get_bool(const struct request *rq, const char *key, bool *ret, struct diag *diag);

#endif
