// SPDX-License-Identifier: BSD-2-Clause
/*
 * The daemon's helper processes: they have none of its secrets, not its addresses, and no other
 * process's user; one that is killed is started again.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/push_server.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "target/proc.h"

#define HTTP_TOKEN "h77pT0kenOfTheListener-4711aBcDeF"
#define PUSH_TOKEN "pu5hT0kenOfTheReceiver-0815gHiJkL"
#define CHILDREN   64
#define NOBODY	   65534

static struct traced t;
static struct pyprofd d;
static struct push_server server;
static char *dir, pid[16];

/* ---- a daemon with secrets ---- */

static const char *in_dir(char out[128], const char *name)
{
	snprintf(out, 128, "%s/%s", dir, name);
	return out;
}

/* Starts it without waiting; it attaches to the target. */
static void launch(void)
{
	char url[64], http[128], cert[128], key[128], push[128];

	dir = temp_dir_new();
	push_server_certificate(dir, "listener");
	file_put_secret(in_dir(http, "http"), HTTP_TOKEN "\n");
	file_put_secret(in_dir(push, "push"), PUSH_TOKEN "\n");
	assert_ok(chmod(in_dir(key, "listener.key"), 0400));
	push_server_start(&server, dir, "200", NULL);
	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", "3600", NULL);
	traced_go(&t);
	pyprofd_init(&d);
	pyprofd_launch(&d, "--pid", pid, "--no-verify", "--http", "127.0.0.1:0",
		       "--http-token-file", http, "--http-cert", in_dir(cert, "listener.pem"),
		       "--http-key", key, "--push", push_server_url(&server, "otlp+http", url),
		       "--push-token-file", push, NULL);
}

static void finish(void)
{
	pyprofd_kill(&d);
	traced_stop(&t);
	push_server_stop(&server);
	temp_dir_remove(dir);
}

static void setup(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
}

TestSuite(helpers, .init = setup);

/* ---- its children ---- */

static size_t children(pid_t out[CHILDREN])
{
	char path[64];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", d.pid, d.pid);
	f = fopen(path, "re");
	cr_assert(f, "the daemon has ended");
	while (n < CHILDREN && fscanf(f, "%d", &out[n]) == 1)
		n++;
	fclose(f);
	return n;
}

/* A line of /proc/PID/status; "": the process has ended. */
static const char *field(pid_t process, const char *name, char out[64])
{
	_cleanup_free_ char *status = NULL;
	const char *value = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", process);
	if (proc_read(AT_FDCWD, path, 65536, &status, NULL) == 0)
		value = proc_field(status, name);
	snprintf(out, 64, "%.*s", value ? (int)strcspn(value, "\n") : 0, value ? value : "");
	return out;
}

static bool is_named(pid_t process, const char *name)
{
	char text[64];

	return strcmp(field(process, "Name", text), name) == 0;
}

/* Has it given up its privileges? */
static bool is_confined(pid_t process)
{
	char text[64];

	return strcmp(field(process, "Seccomp", text), "2") == 0;
}

/* The confined child with this name, once it is there. */
static pid_t await_helper(const char *name, pid_t but)
{
	for (;;) {
		pid_t v[CHILDREN];
		size_t n = children(v);

		for (size_t i = 0; i < n; i++)
			if (v[i] != but && is_named(v[i], name) && is_confined(v[i]))
				return v[i];
		cr_assert(!patience_over(), "there is no %s", name);
		patience_step();
	}
}

/* ---- their memory ---- */

#define NEEDLES 5
static struct needle {
	const char *what;
	uint8_t bytes[64];
	size_t n;
} needles[NEEDLES];

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The private number of a key: 32 bytes behind the tag of an octet string of 32 bytes. */
static void read_key(uint8_t number[32], char line[65])
{
	_cleanup_free_ char *text = NULL;
	uint8_t der[512];
	unsigned int bits = 0, nbits = 0;
	char path[128];
	size_t n = 0;
	uint8_t *at;
	char *body;

	text = file_text(in_dir(path, "listener.key"), NULL);
	body = text ? strchr(text, '\n') : NULL;
	cr_assert(body);
	snprintf(line, 65, "%.*s", (int)strcspn(body + 1, "\n"), body + 1);
	for (char *p = body; *p && *p != '-' && n < sizeof(der); p++) {
		if (base64_digit(*p) < 0)
			continue;
		bits = bits << 6 | (unsigned int)base64_digit(*p);
		nbits += 6;
		if (nbits >= 8)
			der[n++] = (uint8_t)(bits >> (nbits -= 8));
	}
	at = memmem(der, n, "\x04\x20", 2);
	cr_assert(at && at + 34 <= der + n, "the key is not understood");
	memcpy(number, at + 2, 32);
}

static void add_needle(size_t i, const char *what, const void *bytes, size_t n)
{
	needles[i].what = what;
	needles[i].n = n;
	memcpy(needles[i].bytes, bytes, n);
}

static void make_needles(void)
{
	uint8_t number[32], reversed[32];
	char line[65];

	read_key(number, line);
	for (size_t i = 0; i < 32; i++)
		reversed[i] = number[31 - i];
	add_needle(0, "the token of --push", PUSH_TOKEN, strlen(PUSH_TOKEN));
	add_needle(1, "the token of --http", HTTP_TOKEN, strlen(HTTP_TOKEN));
	add_needle(2, "the text of the private key", line, strlen(line));
	add_needle(3, "the private key", number, sizeof(number));
	add_needle(4, "the private key", reversed, sizeof(reversed));
}

#define CHUNK	((size_t)1 << 20)
#define OVERLAP 64

/* Sets a bit for each needle in this part of the memory. */
static unsigned int scan_part(int mem, uint64_t start, uint64_t end)
{
	static char chunk[CHUNK];
	unsigned int found = 0;

	for (uint64_t at = start; at < end; at += CHUNK - OVERLAP) {
		const size_t want = end - at < CHUNK ? end - at : CHUNK;
		ssize_t n = pread(mem, chunk, want, (off_t)at);

		for (size_t i = 0; n > 0 && i < NEEDLES; i++)
			if (memmem(chunk, (size_t)n, needles[i].bytes, needles[i].n))
				found |= 1u << i;
	}
	return found;
}

/* Sets *ret_base to the address of the program. Returns false if the process has ended. */
static bool scan(pid_t process, unsigned int *ret_found, uint64_t *ret_base)
{
	_cleanup_free_ char *maps = NULL;
	_cleanup_close_ int mem = -1;
	char path[64], *line, *next;

	*ret_found = 0;
	*ret_base = 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", process);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/maps", process);
	if (mem < 0 || proc_read(AT_FDCWD, path, 1 << 20, &maps, NULL) < 0)
		return false;
	next = maps;
	while ((line = strsep(&next, "\n")) && *line) {
		char *minus, *flags;
		uint64_t start = strtoull(line, &minus, 16);
		uint64_t end = strtoull(minus + 1, &flags, 16);

		if (!*ret_base && strstr(line, "/pyprofd"))
			*ret_base = start;
		if (flags[1] == 'r' && !strstr(line, "[v"))
			*ret_found |= scan_part(mem, start, end);
	}
	return *ret_base;
}

/* A sender needs the token that it sends. */
static void check_memory(pid_t process, const char *name)
{
	const unsigned int may = strcmp(name, "pyprofd-push") == 0 ? 1 : 0;
	unsigned int found, of_daemon;
	uint64_t base, base_of_daemon;

	if (!scan(process, &found, &base))
		return;
	for (size_t i = 0; i < NEEDLES; i++)
		cr_assert(!(found & ~may & 1u << i), "%s has %s", name, needles[i].what);
	cr_assert(scan(d.pid, &of_daemon, &base_of_daemon));
	cr_assert(base != base_of_daemon, "%s has the daemon's addresses", name);
}

static bool is_in(const pid_t *v, size_t n, pid_t process)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == process)
			return true;
	return false;
}

/* It is stopped meanwhile, unless it has just ended. */
static void check_new(pid_t process, const char *name)
{
	if (kill(process, SIGSTOP) < 0)
		return;
	check_memory(process, name);
	(void)kill(process, SIGCONT);
}

/*
 * While the daemon attaches, each confined process is read. An opener ends soon, and may be missed;
 * but it has nothing that the zygote does not have.
 */
Test(helpers, have_no_secrets)
{
	static const char *const names[] = {"pyprofd-push", "pyprofd-inspect"};
	pid_t seen[CHILDREN], zygote = 0;
	size_t nseen = 0;
	unsigned int kinds = 0, of_daemon;
	uint64_t base;

	launch();
	make_needles();
	while (kinds != 3) {
		pid_t v[CHILDREN];
		size_t n = children(v);
		char name[64];

		cr_assert(!patience_over(), "only the kinds %#x were seen", kinds);
		for (size_t i = 0; i < n; i++) {
			if (is_named(v[i], "pyprofd-helpers"))
				zygote = v[i];
			if (is_in(seen, nseen, v[i]) || !is_confined(v[i]))
				continue;
			cr_assert(nseen < CHILDREN);
			seen[nseen++] = v[i];
			field(v[i], "Name", name);
			check_new(v[i], name);
			for (unsigned int k = 0; k < 2; k++)
				kinds |= strcmp(name, names[k]) == 0 ? 1u << k : 0;
		}
	}
	cr_assert(zygote);
	check_memory(zygote, "pyprofd-helpers");
	/* The daemon has them: the needles are right. */
	cr_assert(scan(d.pid, &of_daemon, &base));
	cr_assert((of_daemon & 3) == 3 && of_daemon & ~3u, "%#x", of_daemon);
	finish();
}

/* ---- their users ---- */

static uid_t user_of(pid_t process)
{
	char text[64];

	return (uid_t)strtoul(field(process, "Uid", text), NULL, 10);
}

/* In a process of the user nobody. Returns the number of the first thing that it could do. */
static int try_all(pid_t helper)
{
	const struct rlimit none = {0, 0};
	struct rlimit old;

	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		return 99;
	if (kill(helper, 0) == 0 || errno != EPERM)
		return 1;
	if (kill(helper, SIGURG) == 0 || errno != EPERM)
		return 2;
	if (prlimit(helper, RLIMIT_AS, NULL, &old) == 0 || errno != EPERM)
		return 3;
	if (prlimit(helper, RLIMIT_NOFILE, &none, NULL) == 0 || errno != EPERM)
		return 4;
	return setpriority(PRIO_PROCESS, (id_t)helper, 19) == 0 ? 5 : 0;
}

static void check_user(pid_t helper, const char *name)
{
	const uid_t uid = user_of(helper);
	int status = 0;
	pid_t nobody;

	cr_assert(uid != 0 && uid != NOBODY, "%s has user %u", name, uid);
	cr_assert(!getpwuid(uid), "%s has the user of an entry", name);
	nobody = fork();
	if (nobody == 0)
		_exit(try_all(helper));
	cr_assert_eq(waitpid(nobody, &status, 0), nobody);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %d", name,
		  WEXITSTATUS(status));
}

/* Waits for the daemon first, so that no process ends meanwhile. */
Test(helpers, have_users_of_their_own)
{
	pid_t inspector, sender;

	launch();
	pyprofd_ready(&d);
	ctl_until(&d, 0, "events", 1);
	inspector = await_helper("pyprofd-inspect", 0);
	sender = await_helper("pyprofd-push", 0);
	check_user(inspector, "the inspector");
	check_user(sender, "the sender");
	cr_assert_neq(user_of(inspector), user_of(sender));
	finish();
}

#define MOVED 1900000000u

/* The first number of the range is that of the package's user. */
Test(helpers, have_users_of_the_range_that_is_reserved)
{
	char passwd[128];
	pid_t inspector;

	assert_ok(unshare(CLONE_NEWNS));
	assert_ok(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	dir = temp_dir_new();
	file_put_secret(in_dir(passwd, "passwd"),
			"root:x:0:0::/:/bin/sh\npyprofd-helper:x:1900000000:0::/:/\n");
	assert_ok(chmod(passwd, 0444));
	assert_ok(mount(passwd, "/etc/passwd", NULL, MS_BIND, NULL));
	temp_dir_remove(dir);
	launch();
	inspector = await_helper("pyprofd-inspect", 0);
	cr_assert_eq(user_of(inspector), MOVED + (uid_t)inspector);
	finish();
}

/* ---- their ends ---- */

static bool log_has(const char *what)
{
	_cleanup_free_ char *text = file_text(d.err, NULL);

	return text && strstr(text, what);
}

Test(helpers, an_inspector_that_is_killed_is_started_again)
{
	pid_t first, second;

	launch();
	first = await_helper("pyprofd-inspect", 0);
	assert_ok(kill(first, SIGKILL));
	/* the attach goes on */
	pyprofd_ready(&d);
	ctl_until(&d, 0, "events", 1);
	cr_assert(log_has("was killed by SIGKILL; it is started again"));
	/* and so do questions later */
	second = await_helper("pyprofd-inspect", first);
	assert_ok(kill(second, SIGTERM));
	assert_ok(kill(second, SIGKILL));
	(void)await_helper("pyprofd-inspect", second);
	free(ctl_ok(&d, "snapshot", "-f", "json", NULL));
	finish();
}

/* ---- the zygote ---- */

/* Executes the program like a zygote, with this as its socket. Returns its status. */
static int execute(int requests)
{
	const char *build = getenv("PYPROF_BUILD");
	char program[4096];
	int status = 0;
	pid_t child;

	snprintf(program, sizeof(program), "%s/pyprofd", build ? build : "build");
	child = fork();
	if (child == 0) {
		(void)dup2(open("/dev/null", O_RDWR), STDERR_FILENO);
		(void)dup2(requests, 3);
		execl(program, "pyprofd-helpers", "ffffffffff", NULL);
		_exit(127);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* One that is passed on is not its parent's: the parent is a process between. */
Test(helpers, the_zygote_serves_only_its_parent)
{
	int ends[2], status = 0;
	pid_t between;

	cr_assert_eq(execute(STDERR_FILENO), 2);
	assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
	between = fork();
	if (between == 0)
		_exit(execute(ends[0]) == 2 ? 0 : 1);
	cr_assert_eq(waitpid(between, &status, 0), between);
	cr_assert_eq(status, 0);
}
