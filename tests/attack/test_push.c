// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receivers that fail, cheat or attack: no interval is lost or counted twice when answers arrive,
 * memory and time stay bounded, and nothing but the daemon's own senders touches the network.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "base/helper.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/push_server.h"
#include "harness/snapshot_builder.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "push/kinds.h"
#include "push/labels.h"
#include "push/pusher.h"
#include "push/sender.h"

#define TOKEN "s3cr3t-token"

/* Time limits of a request: one that no answer exceeds, one for receivers that do not answer */
#define NEVER_NS UINT64_C(3600000000000)
#define SOON_NS	 UINT64_C(500000000)

static struct sd_event *event;
static struct pusher *pusher;
static struct push_server server;
static char *dir, url[64];
static struct transport_opts transport;
static size_t queue_bytes;

static void setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	dir = temp_dir_new();
	transport = (struct transport_opts){.timeout_ns = NEVER_NS};
	queue_bytes = 0;
	assert_ok(sd_event_new(&event));
}

static void teardown(void)
{
	sd_event_unref(event);
	temp_dir_remove(dir);
}

TestSuite(push, .init = setup, .fini = teardown);

static void start(const char *kind)
{
	const char *urls[] = {push_server_url(&server, kind, url)};
	const struct pusher_opts po = {
		.urls = urls, .nurls = 1, .transport = transport, .queue_bytes = queue_bytes};
	struct diag diag = {0};

	assert_diag_ok(pusher_new(event, &po, &pusher, &diag), &diag);
}

static void stop(void)
{
	pusher_free(pusher);
	push_server_stop(&server);
}

static void add(int number)
{
	uint8_t id[INTERVAL_ID_BYTES] = {1, (uint8_t)(number >> 8), (uint8_t)number};
	struct interval *iv =
		interval_new(id, UINT64_C(1700000000000000000), UINT64_C(1700000010000000000),
			     snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 1 100000\n"
					    "  f b.py:10 3 2000 2500\n"));

	cr_assert(iv);
	assert_ok(push_set_labels(iv, "web"));
	pusher_add(pusher, iv);
}

static struct push_status status(void)
{
	struct push_status st;

	cr_assert(pusher_status(pusher, 0, &st));
	return st;
}

static uint64_t dropped(const struct push_status *st)
{
	uint64_t sum = 0;

	for (int i = 0; i < PUSH_DROPS; i++)
		sum += st->dropped[i];
	return sum;
}

typedef bool (*condition)(const struct push_status *st, uint64_t n);

static bool has_sent(const struct push_status *st, uint64_t n)
{
	return st->sent >= n;
}

static bool has_retried(const struct push_status *st, uint64_t n)
{
	return st->retried >= n;
}

static bool has_dropped(const struct push_status *st, uint64_t n)
{
	return dropped(st) >= n;
}

static void until(condition fn, uint64_t n)
{
	struct push_status st = status();

	while (!fn(&st, n) && !patience_over()) {
		cr_assert(sd_event_run(event, 100000) >= 0);
		st = status();
	}
	cr_assert(fn(&st, n), "sent %llu, retried %llu, dropped %llu, restarts %llu: %s",
		  (unsigned long long)st.sent, (unsigned long long)st.retried,
		  (unsigned long long)dropped(&st), (unsigned long long)st.restarts, st.last_error);
}

/* The child of this process named like a sender; 0: none yet */
static pid_t find_sender(void)
{
	char path[64], comm[32];
	FILE *f;
	int pid = 0, found = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	cr_assert(f);
	while (fscanf(f, "%d", &pid) == 1) {
		char name[64];
		FILE *c;

		snprintf(name, sizeof(name), "/proc/%d/comm", pid);
		c = fopen(name, "re");
		if (c && fgets(comm, sizeof(comm), c) && strncmp(comm, "pyprofd-push", 12) == 0)
			found = pid;
		if (c)
			fclose(c);
	}
	fclose(f);
	return found;
}

/* It takes its name soon after it was started. */
static pid_t sender_pid(void)
{
	pid_t pid;

	while ((pid = find_sender()) == 0 && !patience_over())
		cr_assert(sd_event_run(event, 5000) >= 0);
	cr_assert(pid > 0);
	return pid;
}

/* ---- nothing lost, nothing twice ---- */

Test(push, failures_lose_nothing)
{
	size_t ids;

	push_server_start(&server, dir, "500", "429:1", "200", "503", "200", NULL);
	start("pyroscope+http");
	for (int i = 0; i < 20; i++)
		add(i);
	until(has_sent, 20);
	cr_assert_eq(push_server_count(&server, "200", &ids), 20);
	cr_assert_eq(ids, 20, "none twice");
	cr_assert_eq(status().retried, 3);
	cr_assert_eq(status().queued, 0);
	push_server_check(&server);
	stop();
	check_no_leaks();
}

Test(push, otlp_repeats_what_its_specification_allows)
{
	size_t ids;

	push_server_start(&server, dir, "503", "429:1", "500", "partial", "200", NULL);
	start("otlp+http");
	for (int i = 0; i < 10; i++)
		add(i);
	until(has_sent, 8);
	cr_assert_eq(push_server_count(&server, "200", &ids), 8);
	cr_assert_eq(ids, 8);
	cr_assert_eq(status().dropped[PUSH_DROP_REFUSED], 2, "500 and the partial success");
	push_server_check(&server);
	stop();
	check_no_leaks();
}

/* The receiver has it, but the answer was lost: sent again, with the same id. */
Test(push, lost_answer_keeps_the_id)
{
	json_t *log;

	push_server_start(&server, dir, "lost", "200", NULL);
	start("pyroscope+http");
	add(7);
	until(has_sent, 1);
	log = push_server_log(&server);
	cr_assert_eq(json_array_size(log), 2);
	cr_assert(json_equal(json_object_get(json_array_get(log, 0), "id"),
			     json_object_get(json_array_get(log, 1), "id")));
	json_decref(log);
	stop();
	check_no_leaks();
}

Test(push, killed_sender_loses_nothing)
{
	size_t ids;
	pid_t first, second;

	push_server_start(&server, dir, "slow:0.05", NULL);
	start("pyroscope+http");
	first = sender_pid();
	for (int i = 0; i < 30; i++)
		add(i);
	until(has_sent, 5);
	assert_ok(kill(first, SIGKILL));
	until(has_sent, 30);
	second = sender_pid();
	cr_assert(second != first);
	(void)push_server_count(&server, NULL, &ids);
	cr_assert_eq(ids, 30);
	cr_assert_eq(status().restarts, 1);
	cr_assert(push_server_count(&server, NULL, NULL) <= 31, "only the one being sent, twice");
	push_server_check(&server);
	stop();
	check_no_leaks();
}

/* A sender that stops working is replaced after the timeout and a grace. */
Test(push, stopped_sender_is_replaced)
{
	pid_t first;

	transport.timeout_ns = SOON_NS;
	push_server_start(&server, dir, "200", NULL);
	start("pyroscope+http");
	first = sender_pid();
	assert_ok(kill(first, SIGSTOP));
	add(1);
	until(has_sent, 1);
	cr_assert_geq(status().restarts,
		      1); /* the second one may also be too slow for this limit */
	stop();
	check_no_leaks();
}

/* ---- bounds ---- */

Test(push, queue_is_bounded_while_the_receiver_is_down)
{
	struct push_status st;
	size_t ids;

	queue_bytes = 65536;
	push_server_start(&server, dir, "429:600", NULL);
	start("pyroscope+http");
	for (int i = 0; i < 250; i++)
		add(i);
	until(has_retried, 1);
	until(has_dropped, 100);
	st = status();
	cr_assert(st.queued_bytes <= 65536);
	cr_assert(st.queued > 10);
	cr_assert_eq(st.dropped[PUSH_DROP_FULL], dropped(&st));
	cr_assert_eq(push_server_count(&server, NULL, &ids), 1, "Retry-After is obeyed");
	stop();
	check_no_leaks();
}

static long resident_kb(pid_t pid)
{
	char path[64], line[128];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	cr_assert(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kb = strtol(line + 6, NULL, 10);
	fclose(f);
	return kb;
}

/* The request was refused or repeated; the sender lives, and its memory has not grown. */
static void survive(const char *answer, condition fn)
{
	pid_t pid;
	long before;

	push_server_start(&server, dir, "200", answer, "200", NULL);
	start("pyroscope+http");
	pid = sender_pid();
	add(1);
	until(has_sent, 1);
	before = resident_kb(pid);
	add(2);
	until(fn, fn == has_retried ? 1 : 2);
	until(has_sent, 2);
	cr_assert_eq(sender_pid(), pid, "the same process");
	cr_assert(resident_kb(pid) < before + 8192, "%s: %ld → %ld kB", answer, before,
		  resident_kb(pid));
	stop();
}

Test(push, endless_headers)
{
	survive("headers", has_retried);
	check_no_leaks();
}

Test(push, endless_body)
{
	survive("body", has_sent);
	check_no_leaks();
}

Test(push, gigabyte)
{
	survive("gigabyte", has_sent);
	check_no_leaks();
}

Test(push, garbage)
{
	survive("garbage", has_retried);
	check_no_leaks();
}

Test(push, cut)
{
	/* libcurl itself repeats a request on a connection that it had used before */
	survive("cut", has_sent);
	check_no_leaks();
}

Test(push, too_slow)
{
	transport.timeout_ns = SOON_NS;
	survive("slow:20", has_retried);
	check_no_leaks();
}

Test(push, redirects_are_not_followed)
{
	struct push_server other = server;
	char answer[96], sub[256];

	snprintf(sub, sizeof(sub), "%s/other", dir);
	assert_ok(mkdir(sub, 0700));
	push_server_start(&other, sub, "200", NULL);
	snprintf(answer, sizeof(answer), "redirect:http://127.0.0.1:%d/ingest?x=1", other.port);
	push_server_start(&server, dir, answer, NULL);
	start("pyroscope+http");
	add(1);
	until(has_retried, 1);
	cr_assert(strstr(status().last_error, "redirect"), "%s", status().last_error);
	cr_assert_eq(push_server_count(&other, NULL, NULL), 0);
	push_server_stop(&other);
	stop();
	check_no_leaks();
}

Test(push, proxies_of_the_environment_are_not_used)
{
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	push_server_start(&server, dir, "200", NULL);
	start("pyroscope+http");
	add(1);
	until(has_sent, 1);
	stop();
	check_no_leaks();
}

/* ---- TLS and tokens ---- */

static void write_file(const char *name, const char *text, char path[160])
{
	FILE *f;

	snprintf(path, 160, "%s/%s", dir, name);
	f = fopen(path, "we");
	cr_assert(f);
	fputs(text, f);
	fclose(f);
	assert_ok(chmod(path, 0600));
}

static void start_tls(const char *name)
{
	char cert[160], key[160];

	push_server_certificate(dir, "right");
	push_server_certificate(dir, "wrong");
	snprintf(cert, sizeof(cert), "%s/%s.pem", dir, name);
	snprintf(key, sizeof(key), "%s/%s.key", dir, name);
	push_server_start(&server, dir, "--tls", cert, key, "200", NULL);
}

Test(push, tls_with_the_right_certificate)
{
	char ca[160];

	start_tls("right");
	snprintf(ca, sizeof(ca), "%s/right.pem", dir);
	transport.ca_file = ca;
	start("otlp+https");
	add(1);
	until(has_sent, 1);
	push_server_check(&server);
	stop();
	check_no_leaks();
}

Test(push, tls_with_a_wrong_certificate)
{
	char ca[160];

	start_tls("wrong");
	snprintf(ca, sizeof(ca), "%s/right.pem", dir);
	transport.ca_file = ca;
	start("otlp+https");
	add(1);
	until(has_retried, 1);
	cr_assert(strstr(status().last_error, "certificate"), "%s", status().last_error);
	cr_assert_eq(push_server_count(&server, NULL, NULL), 0);
	stop();
	check_no_leaks();
}

Test(push, tls_is_verified_by_default)
{
	start_tls("right");
	start("otlp+https");
	add(1);
	until(has_retried, 1);
	cr_assert(strstr(status().last_error, "certificate"), "%s", status().last_error);
	cr_assert_eq(push_server_count(&server, NULL, NULL), 0);
	stop();
	check_no_leaks();
}

/* A token that is replaced in the file is used for the next attempt. */
Test(push, token_is_read_again)
{
	char path[160];

	write_file("token", "old\n", path);
	transport.token_file = path;
	transport.tenant = "team-1";
	push_server_start(&server, dir, "--token", "Bearer " TOKEN, "--tenant", "team-1", "200",
			  NULL);
	start("pyroscope+http");
	add(1);
	until(has_retried, 1);
	cr_assert(strstr(status().last_error, "401"), "%s", status().last_error);
	write_file("token", TOKEN "\n", path);
	until(has_sent, 1);
	push_server_check(&server);
	stop();
	check_no_leaks();
}

Test(push, user_and_password)
{
	char path[160];

	write_file("token", "me:" TOKEN "\n", path);
	transport.token_file = path;
	push_server_start(&server, dir, "--token", "Basic bWU6czNjcjN0LXRva2Vu", "200", NULL);
	start("pyroscope+http");
	add(1);
	until(has_sent, 1);
	cr_assert_eq(push_server_count(&server, "200", NULL), 1);
	stop();
	check_no_leaks();
}

static void refuse(const char *address, const char *text)
{
	const struct pusher_opts po = {.urls = &address, .nurls = 1, .transport = transport};
	struct diag diag = {0};

	cr_assert(pusher_check(&po, &diag) < 0);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	cr_assert(strstr(diag.msg, text), "%s", diag.msg);
	cr_assert_null(strstr(diag.msg, TOKEN));
}

Test(push, tokens_stay_here)
{
	const char *two[] = {"otlp+https://a.example", "otlp+https://b.example"};
	struct pusher_opts po = {.urls = two, .nurls = 2};
	struct diag diag = {0};
	char path[160];

	write_file("token", TOKEN, path);
	transport.token_file = path;
	refuse("otlp+http://receiver.example", "without TLS");
	po.transport = transport;
	cr_assert(pusher_check(&po, &diag) < 0, "a token for two servers");
	write_file("token", TOKEN "\r\nX-Evil: 1", path);
	refuse("otlp+https://receiver.example", "no valid token");
	write_file("token", "", path);
	refuse("otlp+https://receiver.example", "empty");
	transport.token_file = dir;
	refuse("otlp+https://receiver.example", "not a file");
	transport.token_file = NULL;
	transport.tenant = "a\r\nX-Evil: 1";
	refuse("otlp+https://receiver.example", "tenant");
	check_no_leaks();
}

/* ---- the sender's restrictions ---- */

#ifndef __SANITIZE_ADDRESS__ /* builds with sanitizers have no list of system calls */
/* Each call must fail. Returns the number of the first that does not. */
static int try_forbidden(void)
{
	char path[] = "/tmp/pyprofd-push-XXXXXX";
	int pair[2];

	if (getuid() == 0)
		return 1;
	if (open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0)
		return 2;
	if (mkostemp(path, O_CLOEXEC) >= 0)
		return 3;
	if (open("/dev/null", O_WRONLY | O_CLOEXEC) >= 0)
		return 4;
	if (socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0)
		return 5;
	if (socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0)
		return 6;
	if (syscall(SYS_fork) >= 0 || syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0)
		return 7;
	if (execl("/bin/true", "true", NULL) >= 0)
		return 8;
	if (kill(getppid(), 0) >= 0)
		return 9;
	if (syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, getppid(), 0, 0) >= 0)
		return 10;
	if (syscall(SYS_bpf, 0, NULL, 0) >= 0 || syscall(SYS_unshare, 0) >= 0)
		return 11;
	if (syscall(SYS_mmap, 0, 4096, 7 /* RWX */, 0x22, -1, 0) != -1)
		return 12;
	/* what it needs */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return 13;
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ? 14 : 0;
}

static void report_forbidden(int fd)
{
	int number = try_forbidden();

	_exit(write(fd, &number, sizeof(number)) == sizeof(number) ? 0 : 1);
}

Test(push, sender_is_confined)
{
	const struct push_url to = {.kind = "otlp", .origin = "http://127.0.0.1:1"};
	const struct transport_secrets secrets = {.ca = NULL};
	const struct sender_opts so = {.url = &to,
				       .kind = push_kinds[0],
				       .transport = &transport,
				       .secrets = &secrets,
				       .max_bytes = 1 << 20};
	struct helper h;
	int number = -1;

	sender_test_work = report_forbidden;
	assert_ok(sender_start(&so, &h));
	assert_ok(fcntl(h.fd, F_SETFL, 0));
	cr_assert_eq(read(h.fd, &number, sizeof(number)), sizeof(number));
	cr_assert_eq(number, 0, "call %d of try_forbidden()", number);
	helper_end(&h);
}
#endif

/* A sender that a receiver has taken over sends anything: the daemon replaces it. */
static void lie(int fd)
{
	struct push_verdict v;

	memset(&v, 0xff, sizeof(v));
	while (write(fd, &v, sizeof(v)) > 0)
		;
	_exit(0);
}

Test(push, lying_sender_is_replaced)
{
	push_server_start(&server, dir, "200", NULL);
	sender_test_work = lie;
	start("pyroscope+http");
	sender_test_work = NULL;
	add(1);
	until(has_sent, 1);
	cr_assert(status().restarts >= 1);
	cr_assert_eq(push_server_count(&server, NULL, NULL), 1);
	stop();
	check_no_leaks();
}
