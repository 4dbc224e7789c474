// SPDX-License-Identifier: BSD-2-Clause
/* The process that talks to a receiver, and the daemon's side of its socket: see sender.h. */
#include "push/sender.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/helper.h"
#include "base/utf8_clean.h"
#include "push/confine.h"
#include "push/kinds.h"
#include "push/queue.h"

void (*sender_test_work)(int fd);

/* What the process is started with; the certificates follow. */
struct job {
	struct push_url url;
	uint64_t timeout_ns, max_bytes, nca;
	uintptr_t test_work; /* helper_number_of(sender_test_work) */
	bool has_tenant, has_ca;
	char tenant[TRANSPORT_TENANT_MAX + 1], token[TRANSPORT_SECRET_MAX];
};

/* ---- in the process ---- */

static bool read_all(int fd, void *data, size_t n)
{
	for (char *p = data; n > 0;) {
		ssize_t got = read(fd, p, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static bool write_all(int fd, const void *data, size_t n)
{
	for (const char *p = data; n > 0;) {
		ssize_t put = send(fd, p, n, MSG_NOSIGNAL);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		p += put;
		n -= (size_t)put;
	}
	return true;
}

/* Room for n bytes and a NUL, filled from the socket. NULL: the end. */
static void *read_new(int fd, uint64_t n, size_t max)
{
	char *data = n <= max ? calloc(1, n + 1) : NULL;

	if (data && read_all(fd, data, n))
		return data;
	free(data);
	return NULL;
}

static struct push_request *read_request(int fd, size_t max)
{
	_cleanup_(push_request_freep) struct push_request *rq = calloc(1, sizeof(*rq));
	struct sender_head head;

	if (!rq || !read_all(fd, &head, sizeof(head)))
		return NULL;
	memcpy(rq->id, head.id, sizeof(rq->id));
	rq->path = read_new(fd, head.npath, max);
	rq->headers = rq->path ? read_new(fd, head.nheaders, max) : NULL;
	rq->body = rq->headers ? read_new(fd, head.nbody, max) : NULL;
	rq->nbody = head.nbody;
	return rq->body ? TAKE_PTR(rq) : NULL;
}

static bool serve(struct transport *t, int fd, size_t max)
{
	_cleanup_(push_request_freep) struct push_request *rq = read_request(fd, max);
	struct push_verdict v = {0};

	if (!rq)
		return false;
	transport_send(t, rq, &v);
	return write_all(fd, &v, sizeof(v));
}

static struct transport *new_transport(const struct job *job)
{
	const struct transport_opts opts = {
		.tenant = job->has_tenant ? job->tenant : NULL,
		.timeout_ns = job->timeout_ns,
	};
	struct transport_secrets secrets = {
		.ca = job->has_ca ? (char *)(job + 1) : NULL,
		.nca = job->nca,
	};
	struct transport *t = NULL;

	memcpy(secrets.token, job->token, sizeof(secrets.token));
	(void)transport_new(&job->url, push_kind_find(job->url.kind, NULL), &opts, &secrets, &t,
			    NULL);
	explicit_bzero(secrets.token, sizeof(secrets.token));
	return t;
}

static void run(struct helper_side *side)
{
	struct job *job = side->ctx;
	void (*test_work)(int) = (void (*)(int))helper_function_of(job->test_work);
	const size_t max = job->max_bytes;
	struct transport *t;

	/* Reads the configuration of the TLS library, which is root's. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		_exit(1);
	t = new_transport(job);
	explicit_bzero(job->token, sizeof(job->token));
	if (!t || confine_sender(side->parent, 2 * max) < 0)
		_exit(1);
	if (test_work)
		test_work(side->chan);
	while (serve(t, side->chan, max))
		;
}

/* ---- in the daemon ---- */

static struct job *make_job(const struct sender_opts *opts, size_t *ret_size)
{
	const struct transport_secrets *secrets = opts->secrets;
	const char *tenant = opts->transport->tenant;
	struct job *job;

	*ret_size = sizeof(*job) + secrets->nca;
	job = calloc(1, *ret_size);
	if (!job)
		return NULL;
	job->url = *opts->url;
	job->timeout_ns = opts->transport->timeout_ns;
	job->max_bytes = opts->max_bytes;
	job->has_tenant = tenant;
	snprintf(job->tenant, sizeof(job->tenant), "%s", tenant ? tenant : "");
	memcpy(job->token, secrets->token, sizeof(job->token));
	job->has_ca = secrets->ca;
	job->nca = secrets->nca;
	if (secrets->ca)
		memcpy(job + 1, secrets->ca, secrets->nca);
	job->test_work = helper_number_of((void (*)(void))sender_test_work);
	return job;
}

int sender_start(const struct sender_opts *opts, struct helper *ret)
{
	size_t size;
	struct job *job = make_job(opts, &size);
	int r;

	*ret = HELPER_NONE;
	if (!job)
		return -ENOMEM;
	r = helper_start_anew(&(struct helper_opts){.name = "pyprofd-push"}, run, job, size, ret);
	explicit_bzero(job, size);
	free(job);
	return r;
}

void sender_begin(struct sender_out *out, struct push_request *const *rqs, size_t n)
{
	const struct push_request *first = rqs[0];

	*out = (struct sender_out){
		.rqs = rqs,
		.n = n,
		.head = {.npath = strlen(first->path),
			 .nheaders = first->headers ? strlen(first->headers) : 0},
	};
	for (size_t i = 0; i < n; i++)
		out->head.nbody += rqs[i]->nbody;
	memcpy(out->head.id, first->id, sizeof(out->head.id));
}

#define PARTS (3 + PUSH_BATCH_MAX)

/* The parts that are left to be written. Returns the number of bytes. */
static size_t parts_left(struct sender_out *out, struct iovec parts[PARTS])
{
	const struct push_request *first = out->rqs[0];
	size_t skip = out->done, left = 0;

	parts[0] = (struct iovec){&out->head, sizeof(out->head)};
	parts[1] = (struct iovec){first->path, out->head.npath};
	parts[2] = (struct iovec){first->headers, out->head.nheaders};
	for (size_t i = 0; i < out->n; i++)
		parts[3 + i] = (struct iovec){out->rqs[i]->body, out->rqs[i]->nbody};
	for (size_t i = 0; i < 3 + out->n; i++) {
		size_t k = skip < parts[i].iov_len ? skip : parts[i].iov_len;

		parts[i].iov_base = k ? (char *)parts[i].iov_base + k : parts[i].iov_base;
		parts[i].iov_len -= k;
		skip -= k;
		left += parts[i].iov_len;
	}
	return left;
}

int sender_write(struct sender_out *out, int fd)
{
	for (;;) {
		struct iovec parts[PARTS];
		struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 3 + out->n};
		ssize_t n;

		if (!parts_left(out, parts))
			return 0;
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return -errno;
		out->done += n > 0 ? (size_t)n : 0;
	}
}

static bool is_valid(struct push_verdict *v)
{
	char clean[PUSH_MESSAGE_MAX] = "";

	if (v->result > PUSH_REFUSE || v->status > 999 ||
	    !memchr(v->message, '\0', sizeof(v->message)))
		return false;
	utf8_clean(v->message, clean, sizeof(clean));
	memcpy(v->message, clean, sizeof(clean));
	return true;
}

int sender_read(struct sender_in *in, int fd)
{
	while (in->have < sizeof(in->verdict)) {
		ssize_t n = recv(fd, (char *)&in->verdict + in->have,
				 sizeof(in->verdict) - in->have, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -EAGAIN : -EPIPE;
		if (n == 0)
			return -EPIPE;
		in->have += (size_t)n;
	}
	in->have = 0;
	return is_valid(&in->verdict) ? 0 : -EPROTO;
}
