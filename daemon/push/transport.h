/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends requests to one receiver by HTTP(S), with libcurl, and waits for each answer. Certificates
 * are verified, redirects are not followed, the environment's proxies are not used, and everything
 * that a receiver can make it hold or wait for is bounded.
 *
 * Answers are hostile: the daemon uses this only in its senders, pyprofctl in its own process.
 */
#ifndef PYPROF_PUSH_TRANSPORT_H
#define PYPROF_PUSH_TRANSPORT_H

#include "push/sink.h"
#include "push/url.h"

#define TRANSPORT_TIMEOUT_NS UINT64_C(30000000000)
#define TRANSPORT_SECRET_MAX 4096u
#define TRANSPORT_TENANT_MAX 1023u
#define TRANSPORT_CA_MAX     ((size_t)4 << 20)

struct transport_opts {
	const char *token_file; /* a token, or user:password; NULL: none */
	const char *tenant;	/* header X-Scope-OrgID; NULL: none */
	const char *ca_file;	/* instead of the system's certificates; NULL: none */
	uint64_t timeout_ns;	/* of a request; 0: TRANSPORT_TIMEOUT_NS */
};

/* What was read from the files */
struct transport_secrets {
	char token[TRANSPORT_SECRET_MAX]; /* "": none */
	char *ca;			  /* PEM, owned; NULL: the system's */
	size_t nca;
};

/* Exit codes 1, 2, 4. */
int transport_read_secrets(const struct transport_opts *opts, struct transport_secrets *ret,
			   struct diag *diag);
void transport_secrets_deinit(struct transport_secrets *s); /* overwrites the token */

/* Refuses a token for a receiver on another machine without TLS. Exit code 2. */
int transport_check(const struct push_url *url, const struct transport_opts *opts,
		    struct diag *diag);

struct transport;

/* All borrowed. *ret is owned by the caller. */
int transport_new(const struct push_url *url, const struct push_kind *kind,
		  const struct transport_opts *opts, const struct transport_secrets *secrets,
		  struct transport **ret, struct diag *diag);
void transport_free(struct transport *t);
DEFINE_FREEP(struct transport, transport_free)

/* Sends as the kind does and waits, at most for the timeout of each POST. */
void transport_send(struct transport *t, const struct push_request *rq, struct push_verdict *ret);

/* One POST. judge: what its answer means; ctx: for judge. */
typedef void (*transport_judge_fn)(void *ctx, const struct push_answer *answer,
				   struct push_verdict *ret);
void transport_post(struct transport *t, const struct push_request *rq, transport_judge_fn judge,
		    void *ctx, struct push_verdict *ret);

#endif
