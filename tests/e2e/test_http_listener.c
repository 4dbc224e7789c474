// SPDX-License-Identifier: BSD-2-Clause
/*
 * pyprofd --http with the programs that scrape it: curl, Go's pprof and Prometheus, with and without a
 * token and TLS. The target's hottest function and the duration of another one are known.
 */
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

#define TOKEN  "6b2f0c9d1e8a4753b6c1d0e9f8a72415"
#define SLEEP  0.05 /* of steady(), s */
#define BUCKET 1.09 /* the width of a histogram's bucket: an eighth of an octave */
#define SCRAPE 500  /* Prometheus's interval, in ms */

static struct pyprofd d;
static struct traced t;
static char pid[16], dir[64], base[128];
static char token_file[96], cert[96], key[96];

static const char *in_dir(char path[96], const char *name)
{
	snprintf(path, 96, "%s/%s", dir, name);
	return path;
}

/* In the test's directory. */
static void make_certificate(void)
{
	const char *const argv[] = {"openssl",
				    "req",
				    "-x509",
				    "-newkey",
				    "ec",
				    "-pkeyopt",
				    "ec_paramgen_curve:prime256v1",
				    "-nodes",
				    "-days",
				    "2",
				    "-subj",
				    "/CN=localhost",
				    "-addext",
				    "subjectAltName=DNS:localhost,IP:127.0.0.1",
				    "-keyout",
				    in_dir(key, "key"),
				    "-out",
				    in_dir(cert, "cert"),
				    NULL};

	tool_need("openssl");
	free(tool_run(argv));
	assert_ok(chmod(key, 0400));
	assert_ok(chmod(cert, 0444));
}

static void make_files(void)
{
	snprintf(dir, sizeof(dir), "/tmp/pyprof-http-XXXXXX");
	temp_dir_make(dir);
	make_certificate();
	file_put_secret(in_dir(token_file, "token"), TOKEN "\n");
}

/* Start the daemon, with a token and TLS or without both, and find its port. */
static void start(bool secure)
{
	json_t *root, *status;

	make_files();
	traced_ready(&t, pid, traced_newest().exe, "scraped.py", NULL);
	if (secure)
		pyprofd_start(&d, "--pid", pid, "--http", "127.0.0.1:0", "--http-token-file",
			      token_file, "--http-cert", cert, "--http-key", key, NULL);
	else
		pyprofd_start(&d, "--pid", pid, "--http", "localhost:0", NULL);
	root = ctl_status(&d);
	status = json_object_get(root, "http");
	cr_assert(json_is_boolean(json_object_get(status, "tls")));
	snprintf(base, sizeof(base), "http%s://%s", secure ? "s" : "",
		 json_string_value(json_object_get(status, "address")));
	json_decref(root);
	ctl_until(&d, 0, "events", 100);
}

static void finish(void)
{
	pyprofd_shutdown(&d);
	traced_finish(&t);
	temp_dir_delete(dir);
}

TestSuite(http_listener);

/* ---- curl ---- */

/* Returns the status of curl ARG... URL; with the body if ret is not NULL. */
static int curl(char **ret, const char *path, const char *const *args)
{
	const char *argv[24] = {"curl", "-s", "-w", "\n%{http_code}"};
	size_t n = 4;
	char url[256], *out, *line;
	int status, code;

	snprintf(url, sizeof(url), "%s%s", base, path);
	while (*args)
		argv[n++] = *args++;
	argv[n++] = url;
	argv[n] = NULL;
	out = tool_try(argv, &status);
	line = strrchr(out, '\n');
	code = line ? (int)strtol(line + 1, NULL, 10) : 0;
	if (ret)
		*ret = out;
	else
		free(out);
	return code;
}

/* A connection without TLS */
static int dial(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval deadline = patience_left();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sa.sin_port = htons((uint16_t)strtoul(strrchr(base, ':') + 1, NULL, 10));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
	assert_ok(connect(fd, (struct sockaddr *)&sa, sizeof(sa)));
	return fd;
}

#define CURL(ret, path, ...) curl(ret, path, (const char *const[]){__VA_ARGS__, NULL})

static void on_loopback(void)
{
	char *text;

	cr_assert(CURL(&text, "/metrics", "-g") == 200);
	cr_assert(strstr(text, "pyprofd_target_info{pid=\""), "%s", text);
	free(text);
	cr_assert(CURL(NULL, "/debug/pprof/", "-g") == 200);
	cr_assert(CURL(NULL, "/v1/status", "-g") == 404);
	cr_assert(CURL(NULL, "/v1/stop", "-X", "POST") == 404);
	cr_assert(CURL(NULL, "/metrics", "-X", "DELETE") == 405);
	cr_assert(CURL(NULL, "/metrics", "-H", "Host: example.org") == 403);
	cr_assert(CURL(NULL, "/metrics", "-H", "Sec-Fetch-Site: cross-site") == 403);
	cr_assert(CURL(NULL, "/metrics", "-H", "Origin: https://example.org") == 403);
	text = ctl_ok(&d, "status", NULL);
	cr_assert(strstr(text, "/, without a token; requests refused: 3\n"), "%s", text);
	free(text);
}

static void token_and_tls(void)
{
	char own[128], *text;

	cr_assert(CURL(NULL, "/metrics", "-H", "Authorization: Bearer " TOKEN, "--cacert", cert) ==
		  200);
	cr_assert(CURL(NULL, "/metrics", "-u", "any:" TOKEN, "--cacert", cert) == 200);
	cr_assert(CURL(NULL, "/metrics", "--cacert", cert) == 401);
	cr_assert(CURL(NULL, "/metrics", "-u", TOKEN ":x", "--cacert", cert) == 401);
	cr_assert(CURL(NULL, "/metrics", "-H", "Authorization: Bearer " TOKEN) == 0,
		  "a certificate of its own");
	cr_assert(CURL(NULL, "/metrics", "--cacert", cert, "--tls-max", "1.1", "--ciphers",
		       "DEFAULT@SECLEVEL=0") == 0);
	snprintf(own, sizeof(own), "%s", base);
	memmove(base + 4, base + 5, strlen(base + 4)); /* http: */
	cr_assert(CURL(NULL, "/metrics", "-u", "any:" TOKEN) != 200);
	snprintf(base, sizeof(base), "%s", own);
	text = ctl_ok(&d, "status", NULL);
	cr_assert(strstr(text, "listening on https://") &&
			  strstr(text, "/, with a token; requests refused: 2\n"),
		  "%s", text);
	free(text);
}

#define STALLED 20

/* Clients that do not complete the handshake, or the request after it, do not block others. */
static void begin_stalled_clients(int fd[STALLED])
{
	static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

	for (int i = 0; i < STALLED; i++) {
		fd[i] = dial();
		if (i % 2)
			cr_assert(send(fd[i], hello, sizeof(hello) - 1, MSG_NOSIGNAL) > 0);
	}
	for (int i = 0; i < 5; i++)
		cr_assert(CURL(NULL, "/metrics", "-u", "any:" TOKEN, "--cacert", cert) == 200);
}

/* The daemon closes their connections after a while. */
static void end_stalled_clients(const int fd[STALLED])
{
	char byte;

	for (int i = 0; i < STALLED; i++) {
		cr_assert(recv(fd[i], &byte, 1, 0) <= 0 && errno != EAGAIN, "it is kept open");
		close(fd[i]);
	}
}

Test(http_listener, refused)
{
	char other[96];

	make_files();
	pyprofd_init(&d);
	pyprofd_fails(&d, 2, "needs a token and a certificate", "--http", "0.0.0.0:0", NULL);
	pyprofd_fails(&d, 2, "needs a token and a certificate", "--http", "[::]:0",
		      "--http-token-file", token_file, NULL);
	pyprofd_fails(&d, 2, "invalid address", "--http", "9931", NULL);
	pyprofd_fails(&d, 2, "belong together", "--http", "localhost:0", "--http-cert", cert, NULL);
	pyprofd_fails(&d, 1, "cannot serve the HTTP listener", "--http", "localhost:0",
		      "--http-cert", token_file, "--http-key", key, NULL);
	file_put_secret(in_dir(other, "short"), "0123456789abcdef\n");
	pyprofd_fails(&d, 2, "less than 128 bits", "--http", "localhost:0", "--http-token-file",
		      other, NULL);
	assert_ok(chmod(token_file, 0440));
	pyprofd_fails(&d, 2, "other users can use", "--http", "localhost:0", "--http-token-file",
		      token_file, NULL);
	pyprofd_deinit(&d);
	temp_dir_delete(dir);
}

/* ---- Go's pprof ---- */

/* Seconds: "1.20s", "30ms", "500us" */
static double seconds_of(const char *text)
{
	char *unit;
	double v = strtod(text, &unit);

	return *unit == 's' ? v : v / (*unit == 'm' ? 1e3 : 1e6);
}

/*
 * The function in the first row of -top is the hottest. On a busy machine, the target may have done little in the
 * time of the profile: once more, until the call that has not ended makes no difference.
 */
static void assert_hottest(const char *const *argv)
{
	for (;;) {
		char *text = tool_run(argv), *row = strstr(text, "cum%\n");

		cr_assert(row, "%s", text);
		row += 5;
		row[strcspn(row, "\n")] = '\0';
		if (seconds_of(row) >= 0.02) {
			cr_assert(strstr(row, " hot"), "%s", row);
			free(text);
			return;
		}
		cr_assert(!patience_over(), "%s", row);
		free(text);
	}
}

static void profile_url(char url[256], const char *query)
{
	const char *scheme = strstr(base, "https") ? "https://any:" TOKEN "@" : "http://";

	snprintf(url, 256, "%s%s/debug/pprof/profile?%s", scheme, strstr(base, "://") + 3, query);
}

static void check_pprof(void)
{
	char url[256], query[64];

	tool_need("go");
	setenv("PPROF_TMPDIR", dir, 1);
	setenv("SSL_CERT_FILE", cert, 1); /* its own fetcher ignores -tls_ca */
	snprintf(query, sizeof(query), "seconds=1&pid=%s", pid);
	profile_url(url, query);
	assert_hottest((const char *const[]){"go", "tool", "pprof", "-sample_index=cpu", "-top",
					     url, NULL});
}

/* Without what the first part of the time had, as much remains of each function, compared with the others. */
static void check_difference(void)
{
	char url[256], shorter[256];

	profile_url(url, "seconds=2");
	profile_url(shorter, "seconds=1");
	assert_hottest((const char *const[]){"go", "tool", "pprof", "-sample_index=cpu",
					     "-diff_base", shorter, "-top", url, NULL});
}

/* The tool shows why there is no profile. */
static void pprof_without_targets(void)
{
	char url[256], *text;
	int status;

	free(ctl_ok(&d, "stop", NULL));
	profile_url(url, "seconds=1");
	text = tool_try((const char *const[]){"go", "tool", "pprof", "-top", url, NULL}, &status);
	cr_assert(status != 0 && strstr(text, "no target is being traced"), "%s", text);
	free(text);
}

/* ---- Prometheus ---- */

static pid_t prometheus;
static unsigned int port;

static void find_port(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_ok(bind(fd, (struct sockaddr *)&sa, n));
	assert_ok(getsockname(fd, (struct sockaddr *)&sa, &n));
	port = ntohs(sa.sin_port);
	close(fd);
}

static void write_config(const char *path)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "global: {scrape_interval: %dms}\n"
		 "scrape_configs:\n"
		 "  - job_name: pyprofd\n"
		 "    scheme: https\n"
		 "    authorization: {credentials_file: %s}\n"
		 "    tls_config: {ca_file: %s, server_name: localhost}\n"
		 "    static_configs: [{targets: ['%s']}]\n",
		 SCRAPE, token_file, cert, strstr(base, "://") + 3);
	file_put_secret(path, text);
}

static void prometheus_start(void)
{
	char config[96], data[96], log[96], args[3][160];

	tool_need("prometheus");
	find_port();
	write_config(in_dir(config, "prometheus.yml"));
	snprintf(args[0], sizeof(args[0]), "--config.file=%s", config);
	snprintf(args[1], sizeof(args[1]), "--storage.tsdb.path=%s", in_dir(data, "data"));
	snprintf(args[2], sizeof(args[2]), "--web.listen-address=127.0.0.1:%u", port);
	in_dir(log, "prometheus.log");
	prometheus = fork();
	if (prometheus == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fd, 1);
		dup2(fd, 2);
		execlp("prometheus", "prometheus", args[0], args[1], args[2],
		       "--enable-feature=native-histograms", NULL);
		_exit(127);
	}
	cr_assert(prometheus > 0);
}

static void prometheus_stop(void)
{
	int status;

	kill(prometheus, SIGTERM);
	cr_assert(waitpid(prometheus, &status, 0) == prometheus);
}

/* The results of a query; NULL: it does not answer yet. The caller frees *ret_root. */
static json_t *query_once(const char *query, json_t **ret_root)
{
	char url[128], data[512], *out;
	int status;

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/api/v1/query", port);
	snprintf(data, sizeof(data), "query=%s", query);
	out = tool_try((const char *const[]){"curl", "-s", "--data-urlencode", data, url, NULL},
		       &status);
	*ret_root = json_loads(out, 0, NULL);
	free(out);
	return json_object_get(json_object_get(*ret_root, "data"), "result");
}

static double value_of(const json_t *result)
{
	const char *text = json_string_value(json_array_get(json_object_get(result, "value"), 1));

	return text ? strtod(text, NULL) : NAN;
}

/* Ask until there are `least` results, the first of them with so large a value. The caller frees *ret_root. */
static json_t *query(const char *text, size_t least, double value, json_t **ret_root)
{
	for (;;) {
		json_t *results = query_once(text, ret_root);

		if (json_array_size(results) >= least &&
		    value_of(json_array_get(results, 0)) >= value)
			return results;
		cr_assert(!patience_over(), "no results: %s", text);
		json_decref(*ret_root);
		patience_pass(SCRAPE);
	}
}

/* Of the 200 ms, the call that has not ended yet is 4 ms. */
static void check_top(void)
{
	json_t *root, *results = query("sort_desc(topk(3, sum by (function) "
				       "(pyprofd_function_self_seconds_total{clock=\"cpu\"})))",
				       3, 0.2, &root);
	const char *first = json_string_value(
		json_object_get(json_object_get(json_array_get(results, 0), "metric"), "function"));
	double ratio = value_of(json_array_get(results, 0)) / value_of(json_array_get(results, 1));

	cr_assert(strstr(first, "(hot)"), "%s", first);
	cr_assert(ratio > 1.2 && ratio < 4, "%g times warm()", ratio);
	json_decref(root);
}

/* The number of durations of steady() by the wall clock, and their median in seconds, as the daemon has them */
static double known_median(json_int_t *ret_n)
{
	char *text = ctl_ok(&d, "snapshot", "-f", "json", NULL);
	json_t *root = json_loads(text, 0, NULL), *f, *bucket, *wall = NULL;
	double median;
	size_t i;

	json_array_foreach(json_object_get(root, "functions"), i, f)
	{
		if (strcmp(json_string_value(json_object_get(f, "name")), "steady") == 0)
			wall = json_object_get(json_object_get(f, "durations"), "wall");
	}
	cr_assert(wall, "%s", text);
	*ret_n = 0;
	json_array_foreach(json_object_get(wall, "buckets"), i, bucket) *ret_n +=
		json_integer_value(json_array_get(bucket, 1));
	median = (double)json_integer_value(json_object_get(wall, "p50")) / 1e9;
	json_decref(root);
	free(text);
	return median;
}

#define STEADY "pyprofd_call_duration_seconds{clock=\"wall\",function=~\".*steady.*\"}"

/*
 * A native histogram has no series of buckets, and is more accurate than classic buckets. The target has been
 * stopped, so there is a scrape that has all durations.
 */
static void check_histogram(void)
{
	json_t *root, *results;
	json_int_t n;
	double seconds, known;

	free(ctl_ok(&d, "stop", NULL));
	json_decref(ctl_target_at_rest(&d, 0));
	known = known_median(&n);
	cr_assert(known >= SLEEP / BUCKET, "%g", known);
	query("histogram_count(" STEADY ")", 1, (double)n, &root);
	json_decref(root);
	results = query("histogram_quantile(0.5, " STEADY ")", 1, 0, &root);
	seconds = value_of(json_array_get(results, 0));
	cr_assert(seconds > known / (BUCKET * BUCKET) && seconds < known * BUCKET * BUCKET,
		  "%g, not %g", seconds, known);
	json_decref(root);
	results = query_once("pyprofd_call_duration_seconds_bucket", &root);
	cr_assert(json_array_size(results) == 0);
	json_decref(root);
}

static void check_others(void)
{
	static const char *const families[] = {
		"up",
		"pyprofd_events_total",
		"rate(pyprofd_process_cpu_seconds_total[10s])",
		"pyprofd_process_resident_memory_bytes",
		"pyprofd_wait_seconds_total{reason=\"sleep\"}",
		"pyprofd_function_calls_total{function=~\".*steady.*\"}",
		"pyprofd_probe_seconds_total",
	};
	json_t *root;

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		query(families[i], 1, DBL_MIN, &root);
		json_decref(root);
	}
}

static void check_prometheus(void)
{
	prometheus_start();
	check_top();
	check_others();
	check_histogram();
	prometheus_stop();
}

Test(http_listener, with_a_token_and_tls)
{
	int stalled[STALLED];

	start(true);
	token_and_tls();
	begin_stalled_clients(stalled);
	check_pprof();
	check_difference();
	end_stalled_clients(stalled);
	check_prometheus();
	finish();
}

/* Neither of the text formats has anything that promtool remarks on. */
static void check_promtool(void)
{
	char path[96], command[256], *text;

	tool_need("promtool");
	for (int i = 0; i < 2; i++) {
		free(ctl_ok(&d, "ping", NULL));
		cr_assert(CURL(&text, "/metrics", "-H", "Accept: text/plain") == 200);
		cr_assert(strstr(text, "pyprofd_call_duration_seconds_bucket"), "%s", text);
		*strrchr(text, '\n') = '\0'; /* the status */
		file_put_secret(in_dir(path, i ? "second" : "first"), text);
		free(text);
		snprintf(command, sizeof(command), "promtool check metrics < %s", path);
		text = tool_run((const char *const[]){"sh", "-c", command, NULL});
		cr_assert_str_eq(text, "");
		free(text);
	}
}

Test(http_listener, without)
{
	start(false);
	on_loopback();
	check_promtool();
	check_pprof();
	pprof_without_targets();
	finish();
}
