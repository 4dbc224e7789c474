// SPDX-License-Identifier: BSD-2-Clause
/* Sending requests with libcurl: see transport.h. */
#include "push/transport.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "push/answer.h"
#include "pyprof/version.h"

#define CONNECT_MS 10000L
#define NS_PER_MS  UINT64_C(1000000)

struct transport {
	CURL *curl;
	const struct push_kind *kind;
	char base[PUSH_ORIGIN_MAX + PUSH_PATH_MAX + 32];
	struct push_memory *memory; /* the kind's; NULL: it has none */
	struct curl_slist *headers; /* of each request */
	struct answer answer;
	char error[CURL_ERROR_SIZE];
};

/* ---- files ---- */

static int read_up_to(int fd, char *data, size_t max, size_t *ret)
{
	size_t n = 0;
	ssize_t got;

	while (n < max && (got = read(fd, data + n, max - n)) != 0) {
		if (got < 0 && errno != EINTR)
			return -errno;
		n += got > 0 ? (size_t)got : 0;
	}
	*ret = n;
	return 0;
}

/* data: room for max + 1 bytes; becomes a string. */
static int read_file(const char *path, char *data, size_t max, size_t *ret, struct diag *diag)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st = {.st_mode = 0};
	int r;

	*ret = 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return diag_errno(diag, errno, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "'%s' is not a file", path);
	r = read_up_to(fd, data, max + 1, ret);
	if (r < 0)
		return diag_errno(diag, -r, "cannot read '%s'", path);
	if (*ret > max || *ret == 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "'%s' is %s", path,
				*ret ? "too large" : "empty");
	data[*ret] = '\0';
	return 0;
}

static int read_token(const char *path, struct transport_secrets *ret, struct diag *diag)
{
	char text[TRANSPORT_SECRET_MAX + 1];
	size_t n = 0;
	int r = read_file(path, text, sizeof(ret->token) - 1, &n, diag);

	if (r < 0)
		return r;
	while (n && strchr(" \t\r\n", text[n - 1]))
		text[--n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (text[i] < '!' || text[i] > '~')
			n = 0;
	if (n)
		memcpy(ret->token, text, n + 1);
	explicit_bzero(text, sizeof(text));
	if (!n)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"it must be one token, or user:password, in ASCII without blanks",
				"'%s' has no valid token", path);
	return 0;
}

static int read_ca(const char *path, struct transport_secrets *ret, struct diag *diag)
{
	_cleanup_free_ char *text = malloc(TRANSPORT_CA_MAX + 1);
	int r;

	if (!text)
		return diag_errno(diag, ENOMEM, "cannot read '%s'", path);
	r = read_file(path, text, TRANSPORT_CA_MAX - 1, &ret->nca, diag);
	if (r < 0)
		return r;
	if (!strstr(text, "-----BEGIN "))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "certificates in PEM",
				"'%s' contains no certificate", path);
	ret->ca = TAKE_PTR(text);
	return 0;
}

int transport_read_secrets(const struct transport_opts *opts, struct transport_secrets *ret,
			   struct diag *diag)
{
	int r = 0;

	*ret = (struct transport_secrets){.ca = NULL};
	if (opts->token_file)
		r = read_token(opts->token_file, ret, diag);
	if (r == 0 && opts->ca_file)
		r = read_ca(opts->ca_file, ret, diag);
	if (r < 0)
		transport_secrets_deinit(ret);
	return r;
}

void transport_secrets_deinit(struct transport_secrets *s)
{
	explicit_bzero(s->token, sizeof(s->token));
	free(s->ca);
	s->ca = NULL;
}

int transport_check(const struct push_url *url, const struct transport_opts *opts,
		    struct diag *diag)
{
	if (opts->token_file && !url->tls && !url->loopback)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "use https",
				"a token must not be sent to another machine without TLS");
	if (opts->tenant && strlen(opts->tenant) > TRANSPORT_TENANT_MAX)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "the tenant is too long");
	for (const char *p = opts->tenant; p && *p; p++)
		if (*p < '!' || *p > '~')
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "",
					"the tenant has invalid characters");
	return 0;
}

/* ---- set-up ---- */

static int add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

static int add_fixed_headers(struct transport *t, const struct transport_opts *opts,
			     const struct transport_secrets *secrets)
{
	char line[TRANSPORT_SECRET_MAX + 64];
	int r = add_header(&t->headers, "Expect:"); /* do not wait for "100 Continue" */

	if (r == 0 && opts->tenant) {
		snprintf(line, sizeof(line), "X-Scope-OrgID: %s", opts->tenant);
		r = add_header(&t->headers, line);
	}
	if (r == 0 && secrets->token[0] && !strchr(secrets->token, ':')) {
		snprintf(line, sizeof(line), "Authorization: Bearer %s", secrets->token);
		r = add_header(&t->headers, line);
	}
	explicit_bzero(line, sizeof(line));
	return r;
}

static bool set_tls(CURL *c, const struct transport_secrets *secrets)
{
	struct curl_blob ca = {.data = secrets->ca, .len = secrets->nca, .flags = CURL_BLOB_COPY};

	if (curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) != CURLE_OK)
		return false;
	/* These certificates and no others. */
	return !secrets->ca || (curl_easy_setopt(c, CURLOPT_CAINFO, NULL) == CURLE_OK &&
				curl_easy_setopt(c, CURLOPT_CAPATH, NULL) == CURLE_OK &&
				curl_easy_setopt(c, CURLOPT_CAINFO_BLOB, &ca) == CURLE_OK);
}

static bool set_limits(CURL *c, const struct transport_opts *opts)
{
	const uint64_t ns = opts->timeout_ns ? opts->timeout_ns : TRANSPORT_TIMEOUT_NS;
	const long ms = (long)((ns + NS_PER_MS - 1) / NS_PER_MS);

	return curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, ms) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, ms < CONNECT_MS ? ms : CONNECT_MS) ==
		       CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PROXY, "") == CURLE_OK; /* nor the environment's */
}

static bool set_login(CURL *c, const struct transport_secrets *secrets)
{
	return !strchr(secrets->token, ':') ||
	       (curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_USERPWD, secrets->token) == CURLE_OK);
}

static bool set_up(struct transport *t, const struct transport_opts *opts,
		   const struct transport_secrets *secrets)
{
	CURL *c = t->curl;

	return set_limits(c, opts) && set_tls(c, secrets) && set_login(c, secrets) &&
	       curl_easy_setopt(c, CURLOPT_USERAGENT, "pyprofd/" PYPROF_VERSION) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->error) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, answer_header) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_HEADERDATA, &t->answer) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, answer_body) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEDATA, &t->answer) == CURLE_OK;
}

/* For ClickHouse, the path of the address is a database. */
static void make_base(struct transport *t, const struct push_url *url)
{
	if (t->kind->path_as)
		snprintf(t->base, sizeof(t->base), "%s%s%s", url->origin, t->kind->path_as,
			 *url->path ? url->path + 1 : t->kind->path_default);
	else
		snprintf(t->base, sizeof(t->base), "%s%s", url->origin, url->path);
}

int transport_new(const struct push_url *url, const struct push_kind *kind,
		  const struct transport_opts *opts, const struct transport_secrets *secrets,
		  struct transport **ret, struct diag *diag)
{
	_cleanup_(transport_freep) struct transport *t = calloc(1, sizeof(*t));

	if (!t)
		return diag_errno(diag, ENOMEM, "cannot push");
	t->kind = kind;
	t->curl = curl_easy_init();
	make_base(t, url);
	if (kind->memory_new)
		t->memory = kind->memory_new();
	if (!t->curl || (kind->memory_new && !t->memory) || !set_up(t, opts, secrets) ||
	    add_fixed_headers(t, opts, secrets) < 0)
		return diag_errno(diag, ENOMEM, "cannot push");
	*ret = TAKE_PTR(t);
	return 0;
}

void transport_free(struct transport *t)
{
	if (!t)
		return;
	if (t->memory)
		t->kind->memory_free(t->memory);
	curl_easy_cleanup(t->curl);
	curl_slist_free_all(t->headers);
	free(t);
}

/* ---- a request ---- */

/* The fixed headers, those of the request, and its id */
static int make_headers(const struct transport *t, const struct push_request *rq,
			struct curl_slist **ret)
{
	char id[INTERVAL_ID_TEXT], line[512];
	int r = 0;

	for (const struct curl_slist *h = t->headers; r == 0 && h; h = h->next)
		r = add_header(ret, h->data);
	snprintf(line, sizeof(line), "Idempotency-Key: %s", interval_id_text(rq->id, id));
	if (r == 0)
		r = add_header(ret, line);
	for (const char *p = rq->headers ? rq->headers : ""; r == 0 && *p;) {
		size_t n = strcspn(p, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)n, p);
		r = add_header(ret, line);
		p += n + (p[n] == '\n');
	}
	return r;
}

static bool set_request(struct transport *t, const struct push_request *rq, const char *url,
			struct curl_slist *headers)
{
	CURL *c = t->curl;

	return curl_easy_setopt(c, CURLOPT_URL, url) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_POST, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_POSTFIELDS, rq->body ? (char *)rq->body : "") ==
		       CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->nbody) ==
		       CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers) == CURLE_OK;
}

/* Once the header is complete, the status counts, whatever happens to the body. */
static void perform(struct transport *t, transport_judge_fn judge, void *ctx,
		    struct push_verdict *ret)
{
	struct push_answer a = {.body = t->answer.body};
	curl_off_t wait = 0;
	long status = 0;
	CURLcode code;

	t->error[0] = '\0';
	answer_reset(&t->answer);
	code = curl_easy_perform(t->curl);
	(void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &wait);
	if (t->answer.too_large)
		a.error = "the answer's header is too large";
	else if (!t->answer.complete)
		a.error = t->error[0] ? t->error : curl_easy_strerror(code);
	a.status = status > 0 && status < 1000 ? (unsigned int)status : 0;
	a.retry_after_s = wait > 0 ? (uint64_t)wait : 0;
	a.nbody = t->answer.kept;
	judge(ctx, &a, ret);
}

void transport_post(struct transport *t, const struct push_request *rq, transport_judge_fn judge,
		    void *ctx, struct push_verdict *ret)
{
	_cleanup_free_ char *url = NULL;
	struct curl_slist *headers = NULL;

	if (asprintf(&url, "%s%s", t->base, rq->path) < 0)
		url = NULL;
	if (url && make_headers(t, rq, &headers) == 0 && set_request(t, rq, url, headers))
		perform(t, judge, ctx, ret);
	else
		push_verdict_set(ret, PUSH_RETRY, &(struct push_answer){.error = "out of memory"},
				 NULL);
	(void)curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(headers);
}

static void judge_as_kind(void *ctx, const struct push_answer *answer, struct push_verdict *ret)
{
	const struct push_kind *kind = ctx;

	kind->judge(answer, ret);
}

void transport_send(struct transport *t, const struct push_request *rq, struct push_verdict *ret)
{
	if (t->kind->send)
		t->kind->send(t->memory, t, rq, ret);
	else
		transport_post(t, rq, judge_as_kind, (void *)t->kind, ret);
}
