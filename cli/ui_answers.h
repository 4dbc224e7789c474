/* SPDX-License-Identifier: BSD-2-Clause */
/* The answers of the live page's server. They may block, and are called from several threads. */
#ifndef PYPROFCTL_UI_ANSWERS_H
#define PYPROFCTL_UI_ANSWERS_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/diag.h"
#include "ui_routes.h"

struct ui_response {
	unsigned int status;
	const char *mime;   /* a literal */
	const char *policy; /* Content-Security-Policy, for the page; not NUL-terminated */
	size_t npolicy;
	const char *page; /* a literal instead of body */
	char *body;	  /* owned */
	size_t n;
};

/* A request that is allowed; all borrowed */
struct ui_wanted {
	const struct ui_route *route;
	const char *socket; /* the daemon's */
	const char *uri;
	const char *body;	   /* NUL-terminated */
	const atomic_bool *cancel; /* true: answer with an error soon */
};

/* ret must be zeroed. Errors become responses as well. */
void ui_answer(const struct ui_wanted *q, struct ui_response *ret);
/* status 0: as follows from the exit code */
void ui_answer_error(struct ui_response *ret, unsigned int status, const struct diag *diag);

#endif
