/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A decoded request of the control API: path, and parameters from the query string or JSON body.
 * Pure; all input is hostile. All sizes are limited, and accepted text contains no NUL and no
 * invalid percent-encoding.
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
	char *target; /* owned; path, keys and values point into it */
	const char *path;
	struct request_param params[REQUEST_PARAMS_MAX];
	size_t nparams;
	char *body[REQUEST_PARAMS_MAX]; /* owned: strings from the body */
	size_t nbody;
	const char *accept; /* the Accept header, borrowed; NULL: none */
	uint64_t since_ns;  /* time of receipt, CLOCK_MONOTONIC; 0: unknown */
	uint32_t span;	    /* that the client has waited for, see spans.h; 0: none */
	bool http;	    /* to the HTTP listener */
	bool reader;	    /* of a client that may only read */
};

void request_init(struct request *rq);
void request_deinit(struct request *rq);

/* Parse "/path?key=value&…". -ENAMETOOLONG: longer than REQUEST_URI_MAX; other errors: exit
 * code 2. */
int request_parse_target(struct request *rq, const char *uri, struct diag *diag);

/* Add the members of a JSON object (strings, numbers, booleans) to the parameters. A blank body has
 * none. */
int request_parse_body(struct request *rq, const char *body, size_t n, struct diag *diag);

/* Check that all parameters are in `allowed` (comma-separated), and only `restrict` and `where` are repeated. */
int request_check_params(const struct request *rq, const char *allowed, struct diag *diag);

/* The value, or NULL if not given. */
const char *request_get(const struct request *rq, const char *key);

/* Leave *ret unchanged if the parameter was not given. Exit code 2 if its value is invalid. */
int request_get_pid(const struct request *rq, const char *key, pid_t *ret, struct diag *diag);
int request_get_bool(const struct request *rq, const char *key, bool *ret, struct diag *diag);

#endif
