/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A response of the control API: a status and a body, in memory or, for profiles, in a file. Filled
 * by routes.c, sent by server.c.
 */
#ifndef PYPROF_SERVER_RESPONSE_H
#define PYPROF_SERVER_RESPONSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

struct response {
	unsigned int status;
	const char *mime;	/* a literal */
	char *body;		/* owned */
	size_t size;		/* bytes of body or fd */
	int fd;			/* owned; -1: the body is in memory */
	const char *attachment; /* a literal: name for the file; NULL: none */
	bool for_go;		/* headers that Go's tool expects of an error */
	char allow[64];		/* Allow header of a 405; "": none */
	char location[64];
};

void response_init(struct response *rs);
void response_deinit(struct response *rs);

/* Set the body to root (takes the reference). root NULL: -ENOMEM. */
int response_set_json(struct response *rs, unsigned int status, json_t *root);

/* A diagnosis as {"code", "error", "message", "hint"}; NULL: out of memory. */
json_t *response_error_json(const struct diag *diag, int err);

/* Replace the body by the diagnosis. status 0: derived from the exit code. */
void response_set_error(struct response *rs, unsigned int status, const struct diag *diag, int err);

/* Make this an error with a line of text as its body. */
void response_set_text_error(struct response *rs, const struct diag *diag);

/* The HTTP status for an exit code. */
unsigned int response_status(enum pyp_exit exit);

#endif
