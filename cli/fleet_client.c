// SPDX-License-Identifier: BSD-2-Clause
/* HTTP client for ClickHouse: see fleet_client.h. */
#include "fleet_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>

#include "base/utf8_clean.h"
#include "clickhouse/tables.h"

#define TIMEOUT_S	  300L
#define CONNECT_TIMEOUT_S 10L
#define ANSWER_MAX	  ((size_t)512 * 1024 * 1024)
#define PASSWORD_MAX	  1024
#define SCHEME		  "clickhouse+"
/*
 * The server keeps an answer until it is complete, so that an error in the middle of it is reported
 * as an error. The limits are for questions that would use up the server.
 */
#define SETTINGS "wait_end_of_query=1&max_query_size=1048576&max_result_bytes=536870912"

struct fleet_client {
	CURL *curl;
	struct curl_slist *headers;
	char *origin;	/* "http://host:8123" */
	char *database; /* valid */
	long timeout_s;
};

void fleet_answer_deinit(struct fleet_answer *a)
{
	free(a->data);
	*a = (struct fleet_answer){0};
}

void fleet_free(struct fleet_client *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->curl);
	curl_slist_free_all(c->headers);
	free(c->origin);
	free(c->database);
	free(c);
}

void fleet_set_timeout(struct fleet_client *c, long seconds)
{
	c->timeout_s = seconds;
}

const char *fleet_database(const struct fleet_client *c)
{
	return c->database;
}

static int no_memory(struct diag *diag)
{
	return diag_errno(diag, ENOMEM, "cannot contact the database");
}

/* ---- the address ---- */

static int bad_address(struct diag *diag)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"use clickhouse+http[s]://[USER@]HOST[:PORT][/DATABASE], as operand or "
			"in $" FLEET_ENV "; a password only by --password-file",
			"the address of the fleet's database is missing or not valid");
}

static void urlp(CURLU **u)
{
	curl_url_cleanup(*u);
}

static void curl_freep(char **s)
{
	curl_free(*s);
}

#define _cleanup_curl_ _cleanup_(curl_freep)

/* Returns a part, owned by the caller; NULL: there is none. */
static char *part(CURLU *u, CURLUPart what)
{
	char *ret = NULL;

	return curl_url_get(u, what, &ret, 0) == CURLUE_OK ? ret : NULL;
}

/* A header's value must not end the header. */
static int add_header(struct fleet_client *c, const char *name, const char *value)
{
	char line[PASSWORD_MAX + 64];
	struct curl_slist *more;

	if (strpbrk(value, "\r\n") || strlen(value) >= PASSWORD_MAX)
		return -EINVAL;
	snprintf(line, sizeof(line), "%s: %s", name, value);
	more = curl_slist_append(c->headers, line);
	explicit_bzero(line, sizeof(line));
	if (!more)
		return -ENOMEM;
	c->headers = more;
	return 0;
}

static int set_database(struct fleet_client *c, CURLU *u, struct diag *diag)
{
	_cleanup_curl_ char *path = part(u, CURLUPART_PATH);
	const char *name = path && path[0] == '/' ? path + 1 : "";

	if (*name && !tables_database_valid(name))
		return bad_address(diag);
	c->database = strdup(*name ? name : TABLES_DATABASE);
	return c->database ? 0 : no_memory(diag);
}

static int set_origin(struct fleet_client *c, CURLU *u, struct diag *diag)
{
	_cleanup_curl_ char *scheme = part(u, CURLUPART_SCHEME), *host = part(u, CURLUPART_HOST),
			    *port = part(u, CURLUPART_PORT), *user = part(u, CURLUPART_USER);
	bool tls = scheme && strcmp(scheme, "https") == 0;

	if (!host || !scheme || (!tls && strcmp(scheme, "http") != 0))
		return bad_address(diag);
	if (asprintf(&c->origin, "%s://%s:%s", scheme, host,
		     port  ? port
		     : tls ? "8443"
			   : "8123") < 0)
		return no_memory(diag);
	return user && add_header(c, "X-ClickHouse-User", user) < 0 ? bad_address(diag) : 0;
}

static int set_address(struct fleet_client *c, const char *url, struct diag *diag)
{
	_cleanup_(urlp) CURLU *u = curl_url();
	_cleanup_curl_ char *password = NULL, *query = NULL, *fragment = NULL;
	int r;

	if (!u)
		return no_memory(diag);
	if (!url || strncmp(url, SCHEME, strlen(SCHEME)) != 0 ||
	    curl_url_set(u, CURLUPART_URL, url + strlen(SCHEME), 0) != CURLUE_OK)
		return bad_address(diag);
	password = part(u, CURLUPART_PASSWORD);
	query = part(u, CURLUPART_QUERY);
	fragment = part(u, CURLUPART_FRAGMENT);
	if (password || query || fragment)
		return bad_address(diag);
	r = set_origin(c, u, diag);
	return r < 0 ? r : set_database(c, u, diag);
}

static int set_password(struct fleet_client *c, const char *path, struct diag *diag)
{
	_cleanup_fclose_ FILE *in = path ? fopen(path, "re") : NULL;
	char line[PASSWORD_MAX] = "";
	int r;

	if (!path)
		return 0;
	if (!in)
		return diag_errno(diag, errno, "cannot open '%s'", path);
	if (!fgets(line, sizeof(line), in))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "its first line is the password",
				"'%s' is empty", path);
	line[strcspn(line, "\r\n")] = '\0';
	r = add_header(c, "X-ClickHouse-Key", line);
	explicit_bzero(line, sizeof(line));
	return r < 0 ? diag_errno(diag, -r, "cannot use the password in '%s'", path) : 0;
}

int fleet_open(const char *url, const char *password_file, struct fleet_client **ret,
	       struct diag *diag)
{
	_cleanup_(fleet_freep) struct fleet_client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return no_memory(diag);
	c->timeout_s = TIMEOUT_S;
	c->curl = curl_easy_init();
	if (!c->curl)
		return no_memory(diag);
	r = set_address(c, url ? url : getenv(FLEET_ENV), diag);
	if (r == 0)
		r = set_password(c, password_file, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

/* ---- requests ---- */

struct receiving {
	struct fleet_answer answer;
	size_t cap;
};

static size_t on_data(char *data, size_t size, size_t count, void *userdata)
{
	struct receiving *to = userdata;
	struct fleet_answer *a = &to->answer;
	size_t n = size * count;

	if (n > ANSWER_MAX - a->n)
		return 0;
	if (to->cap - a->n < n) {
		size_t cap = to->cap * 2 > a->n + n ? to->cap * 2 : a->n + n;
		char *more = realloc(a->data, cap);

		if (!more)
			return 0;
		a->data = more;
		to->cap = cap;
	}
	memcpy(a->data + a->n, data, n);
	a->n += n;
	return n;
}

static int transfer_error(const struct fleet_client *c, CURLcode code, const char *text,
			  struct diag *diag)
{
	if (code == CURLE_OPERATION_TIMEDOUT)
		return diag_set(diag, -ETIMEDOUT, PYP_EXIT_FAILURE, "select less, or set --timeout",
				"the database at %.200s did not answer in time", c->origin);
	if (code == CURLE_WRITE_ERROR)
		return diag_set(diag, -EFBIG, PYP_EXIT_FAILURE,
				"select less: a shorter span, or --where",
				"the database's answer is too large");
	return diag_set(diag, -EIO, PYP_EXIT_FAILURE, "check its address, and that it runs",
			"cannot reach the database at %.200s: %.200s", c->origin,
			*text ? text : curl_easy_strerror(code));
}

/* The database's message is one line that begins with a code; its stack trace is left out. */
static int status_error(const struct fleet_client *c, long status, const struct fleet_answer *a,
			struct diag *diag)
{
	char text[256] = "", clean[256];
	size_t n = a->n < sizeof(text) - 1 ? a->n : sizeof(text) - 1;
	const char *hint = "";

	if (a->data)
		memcpy(text, a->data, n);
	text[strcspn(text, "\r\n")] = '\0';
	utf8_clean(text, clean, sizeof(clean));
	if (strstr(clean, "Code: 60") || strstr(clean, "Code: 81"))
		hint = "`pyprofctl fleet init` creates the tables";
	if (status == 401 || status == 403 || strstr(clean, "Code: 192") ||
	    strstr(clean, "Code: 193") || strstr(clean, "Code: 516"))
		return diag_set(diag, -EACCES, PYP_EXIT_PERMISSION,
				"give the user in the address and --password-file",
				"the database at %.100s refuses: %s", c->origin, clean);
	return diag_set(diag, -EPROTO, PYP_EXIT_FAILURE, hint,
			"the database at %.100s answers %ld: %s", c->origin, status, clean);
}

static void set_options(struct fleet_client *c, const char *url, const void *body, size_t n,
			struct receiving *answer, char *error)
{
	CURL *curl = c->curl;

	curl_easy_reset(curl);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, c->timeout_s);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, c->headers);
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
}

static int post(struct fleet_client *c, const char *url, const void *body, size_t n,
		struct fleet_answer *ret, struct diag *diag)
{
	struct receiving to = {.cap = 0};
	char error[CURL_ERROR_SIZE] = "";
	long status = 0;
	CURLcode code;

	int r = 0;

	set_options(c, url, body, n, &to, error);
	code = curl_easy_perform(c->curl);
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK)
		r = transfer_error(c, code, error, diag);
	else if (status != 200)
		r = status_error(c, status, &to.answer, diag);
	if (r == 0 && ret)
		*ret = to.answer;
	else
		fleet_answer_deinit(&to.answer);
	return r;
}

int fleet_run(struct fleet_client *c, const char *sql, size_t nsql, struct fleet_answer *ret,
	      struct diag *diag)
{
	_cleanup_free_ char *url = NULL;

	if (asprintf(&url, "%s/?" SETTINGS, c->origin) < 0) {
		url = NULL;
		return no_memory(diag);
	}
	return post(c, url, sql, nsql, ret, diag);
}

int fleet_insert(struct fleet_client *c, const char *sql, const void *rows, size_t nrows,
		 struct diag *diag)
{
	_cleanup_curl_ char *query = curl_easy_escape(c->curl, sql, 0);
	_cleanup_free_ char *url = NULL;

	if (!query || asprintf(&url, "%s/?query=%s", c->origin, query) < 0) {
		url = NULL;
		return no_memory(diag);
	}
	return post(c, url, rows, nrows, NULL, diag);
}
