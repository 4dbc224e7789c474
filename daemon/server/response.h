/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One answer of the control API as plain data: a status and a body, either in memory or in a file
 * (profiles, which can be large). Filled by routes.c, sent by server.c.
 */
#ifndef PYPROF_SERVER_RESPONSE_H
#define PYPROF_SERVER_RESPONSE_H

#include <jansson.h>
#include <stddef.h>

#include "base/diag.h"

struct response {
	unsigned int status;
	const char *mime; /* literal */
	char *body;	  /* owned */
	size_t size;	  /* of body or fd */
	int fd;		  /* owned; -1: the body is in memory */
	char allow[64];	  /* the Allow header of a 405; "": none */
	char location[64];
};

void response_init(struct response *rs);
void response_deinit(struct response *rs);

/* Take root as the body. NULL (jansson out of memory) is -ENOMEM. */
int response_set_json(struct response *rs, unsigned int status, json_t *root);

/* A diagnosis as {"code", "error", "message", "hint"}; NULL: no memory. */
json_t *response_error_json(const struct diag *diag, int err);

/* That as the body; drops what was there. status 0: from the exit code. */
void response_set_error(struct response *rs, unsigned int status, const struct diag *diag, int err);

/* The HTTP status for an exit code. */
unsigned int response_status(enum pyp_exit exit);

#endif
