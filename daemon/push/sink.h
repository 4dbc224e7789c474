/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of a kind of receiver: how an interval becomes a request, and what an answer means.
 * Plain data, pure. Each kind is a file (pyroscope.c, otlp.c) with one `const struct push_kind`; the
 * table is in kinds.c. Kinds neither connect nor authenticate: transport.c does.
 *
 * encode() runs in a thread of the daemon, judge() in the process without privileges that talks to
 * the receiver, as answers are hostile.
 */
#ifndef PYPROF_PUSH_SINK_H
#define PYPROF_PUSH_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "interval/interval.h"

/* An HTTP request, without what belongs to the connection: host, credentials, tenant. */
struct push_request {
	uint8_t id[INTERVAL_ID_BYTES]; /* of the interval; sent as Idempotency-Key, too */
	char *path;		       /* with the query, after the address's own path; owned */
	char *headers;		       /* lines "Name: value\n"; owned; NULL: none */
	uint8_t *body;		       /* owned */
	size_t nbody;
};

void push_request_free(struct push_request *rq); /* also frees rq itself */
DEFINE_FREEP(struct push_request, push_request_free)
/* The memory that it takes, in bytes */
size_t push_request_bytes(const struct push_request *rq);

/* An answer as received; all borrowed. */
struct push_answer {
	const char *error; /* why there is none, as text; NULL: there is one */
	unsigned int status;
	uint64_t retry_after_s; /* of the header Retry-After; 0: none */
	const uint8_t *body;	/* its beginning */
	size_t nbody;
};

enum push_result {
	PUSH_DONE,   /* the receiver has it */
	PUSH_RETRY,  /* send it again later */
	PUSH_REFUSE, /* the receiver will never take it: drop it */
};

#define PUSH_MESSAGE_MAX 200

/* Plain data: it is sent from the process that received the answer. */
struct push_verdict {
	uint32_t result; /* enum push_result */
	uint32_t status; /* HTTP status; 0: no answer */
	uint64_t retry_after_s;
	char message[PUSH_MESSAGE_MAX]; /* of the failure or a warning; "" if there is none */
};

struct transport;
struct push_memory;

struct push_kind {
	const char *name; /* as in the address */
	/*
	 * What the path of the address, without its slash, is appended to, before the request's own
	 * path; NULL: it is the beginning of the path.
	 */
	const char *path_as;
	const char *path_default; /* with path_as: what is appended if the address has no path */
	/* *ret is owned by the caller. Returns 0 or a negative errno, with *diag set. */
	int (*encode)(const struct interval *iv, struct push_request **ret, struct diag *diag);
	void (*judge)(const struct push_answer *answer, struct push_verdict *ret);
	/* The bodies of several requests, one after the other, are the body of one for all. */
	bool batches;
	unsigned int posts; /* at most, for one request; 0: one */
	/*
	 * Kinds whose requests are not one POST each; else all NULL. send() has a memory of the
	 * receiver, made by memory_new(); both are called in the sender's process.
	 */
	struct push_memory *(*memory_new)(void);
	void (*memory_free)(struct push_memory *m);
	void (*send)(struct push_memory *m, struct transport *t, const struct push_request *rq,
		     struct push_verdict *ret);
};

/* Sets a verdict, with this text and the beginning of the answer's body. The text may be NULL. */
void push_verdict_set(struct push_verdict *v, enum push_result result,
		      const struct push_answer *answer, const char *text);

/*
 * The verdict by the status alone: 2xx is done; 400, 413, 415 and 422 mean that the request itself
 * is refused; everything else may pass, also errors of configuration, so that nothing is lost while
 * they are corrected.
 */
void push_judge_status(const struct push_answer *answer, struct push_verdict *ret);

#endif
