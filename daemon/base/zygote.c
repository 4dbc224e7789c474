// SPDX-License-Identifier: BSD-2-Clause
/* The process that helpers are forked from: see zygote.h. */
#include "base/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/confine.h"
#include "base/descriptors.h"

/* The words of its command line: this, and its capabilities in hexadecimal digits. */
#define NAME	    "pyprofd-helpers"
#define REQUESTS_FD 3
/* It answers at once, unless it has been stopped or there is no CPU for it. */
#define ANSWER_MS 5000

/* A request, with as many descriptors: the channel, the job, and those that `given` has a bit of */
struct request {
	struct helper_opts opts;
	uint64_t run; /* zygote_number_of() */
	uint64_t size;
	uint32_t given;
};

_Static_assert(2 + HELPER_FDS <= DESCRIPTORS_SENT, "a request fits in a message");

/* ---- functions as numbers ---------------------------------------------------------------- */

/* The beginning of the program's file in memory, defined by the linker */
extern const char start_of_program[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));

uintptr_t zygote_number_of(void (*function)(void))
{
	return function ? (uintptr_t)function - (uintptr_t)start_of_program : 0;
}

void (*zygote_function_of(uintptr_t number))(void)
{
	return number ? (void (*)(void))((uintptr_t)start_of_program + number) : NULL;
}

/* In the zygote and its helpers: the process that they work for. It may have ended. */
static pid_t the_daemon;

/* ---- in the helper ----------------------------------------------------------------------- */

static void *read_job(int fd, size_t size)
{
	char *data = calloc(1, size + 1);

	for (size_t n = 0; data && n < size;) {
		ssize_t got = pread(fd, data + n, size - n, (off_t)n);

		if (got <= 0)
			_exit(1);
		n += (size_t)got;
	}
	if (!data)
		_exit(1);
	return data;
}

static _Noreturn void become_helper(struct request *rq, const int *fds)
{
	struct helper_side s = {.chan = fds[0], .parent = the_daemon, .size = rq->size};
	size_t next = 2;

	for (size_t i = 0; i < HELPER_FDS; i++)
		s.fds[i] = rq->given & 1u << i ? fds[next++] : -1;
	s.ctx = read_job(fds[1], rq->size);
	helper_side_run(&rq->opts, &s, (helper_fn)zygote_function_of(rq->run));
}

/* ---- in the zygote ----------------------------------------------------------------------- */

/* The child is the daemon's, which reaps it; nothing here waits for it. */
static int32_t fork_sibling(struct request *rq, const int *fds)
{
	const long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		become_helper(rq, fds);
	return pid < 0 ? -errno : (int32_t)pid;
}

static bool serve(void)
{
	int fds[DESCRIPTORS_SENT], n;
	struct request rq;
	int32_t answer;

	n = descriptors_receive(REQUESTS_FD, &rq, sizeof(rq), fds);
	if (n < 0 || n != 2 + __builtin_popcount(rq.given))
		return false;
	answer = fork_sibling(&rq, fds);
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
	return send(REQUESTS_FD, &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer);
}

/* Was it executed by the process that is its parent now, for this? */
static bool is_expected(void)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer), type_size = sizeof(int);
	int type = 0;

	the_daemon = getppid();
	return getauxval(AT_SECURE) == 0 &&
	       getsockopt(REQUESTS_FD, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 &&
	       type == SOCK_SEQPACKET &&
	       getsockopt(REQUESTS_FD, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       peer.pid == the_daemon;
}

static _Noreturn void zygote_main(const char *caps)
{
	if (!is_expected()) {
		fprintf(stderr, NAME ": only pyprofd and pyprofctl start this\n");
		_exit(2);
	}
	(void)prctl(PR_SET_NAME, NAME);
	/* What root gets by executing a file is more than what the daemon has. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    confine_keep_capabilities(strtoull(caps, NULL, 16)) < 0)
		_exit(1);
	while (serve())
		;
	_exit(0);
}

/* Before main(), so that programs that have another one, as tests have, can have a zygote, too. */
__attribute__((constructor)) static void become_zygote(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[0], NAME) == 0)
		zygote_main(argv[1]);
}

/* ---- executing it ------------------------------------------------------------------------ */

/* Users other than root lose all capabilities by executing a file, unless they are ambient. */
static void keep_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	if (geteuid() == 0 || syscall(SYS_capget, &head, data) < 0)
		return;
	for (int i = 0; i < 2; i++)
		data[i].inheritable = data[i].permitted;
	if (syscall(SYS_capset, &head, data) < 0)
		return;
	for (unsigned int cap = 0; cap < 64; cap++)
		if (data[cap / 32].permitted & 1u << cap % 32)
			(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
}

/* For the loader, the TLS library and the resolver. Others may be secrets. */
static const char *const passed_on[] = {"LD_LIBRARY_PATH", "LD_PRELOAD",   "ASAN_OPTIONS",
					"UBSAN_OPTIONS",   "LSAN_OPTIONS", "SSL_CERT_FILE",
					"SSL_CERT_DIR",	   "OPENSSL_CONF", "OPENSSL_MODULES",
					"RES_OPTIONS",	   "LOCALDOMAIN",  "TZ"};

#define PASSED_ON (sizeof(passed_on) / sizeof(passed_on[0]))

static bool is_passed_on(const char *entry)
{
	for (size_t i = 0; i < PASSED_ON; i++) {
		const size_t n = strlen(passed_on[i]);

		if (strncmp(entry, passed_on[i], n) == 0 && entry[n] == '=')
			return true;
	}
	return false;
}

static void execute(struct helper_side *side)
{
	char caps[32], *const argv[] = {(char *)NAME, caps, NULL}, *env[PASSED_ON + 1] = {NULL};
	size_t n = 0;

	for (char **e = environ; *e && n < PASSED_ON; e++)
		if (is_passed_on(*e))
			env[n++] = *e;
	snprintf(caps, sizeof(caps), "%llx", (unsigned long long)confine_capabilities());
	keep_capabilities();
	if (side->chan != REQUESTS_FD && dup2(side->chan, REQUESTS_FD) < 0)
		_exit(1);
	if (fcntl(REQUESTS_FD, F_SETFD, 0) < 0 || close_range(REQUESTS_FD + 1, ~0u, 0) < 0)
		_exit(1);
	(void)execve("/proc/self/exe", argv, env);
	_exit(127);
}

/* ---- in the daemon ----------------------------------------------------------------------- */

static struct {
	pid_t owner; /* a forked process needs its own zygote */
	pid_t pid;
	int requests;
} mine = {.requests = -1};

static bool is_running(void)
{
	struct pollfd p = {.fd = mine.requests, .events = 0};

	return mine.requests >= 0 && mine.owner == getpid() && poll(&p, 1, 0) == 0;
}

void zygote_end(void)
{
	if (mine.owner == getpid() && mine.requests >= 0) {
		(void)close(mine.requests);
		(void)kill(mine.pid, SIGKILL);
		(void)waitpid(mine.pid, NULL, 0);
	}
	mine.requests = -1;
	mine.owner = 0;
}

__attribute__((destructor)) static void end_at_exit(void)
{
	zygote_end();
}

int zygote_start(void)
{
	struct helper_side side = {.fds = {-1, -1, -1, -1, -1, -1}};
	int ends[2];
	pid_t pid;

	if (is_running())
		return 0;
	zygote_end();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	side.chan = ends[1];
	pid = helper_side_fork(&(struct helper_opts){.flags = 0}, &side, execute);
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return pid;
	}
	mine.owner = getpid();
	mine.pid = pid;
	mine.requests = ends[0];
	return 0;
}

/* The pid, or a negative errno. A zygote that does not answer is replaced by the next request. */
static int32_t receive_answer(void)
{
	struct pollfd p = {.fd = mine.requests, .events = POLLIN};
	int32_t answer;
	int r;

	do
		r = poll(&p, 1, ANSWER_MS);
	while (r < 0 && errno == EINTR);
	if (r == 1 && recv(mine.requests, &answer, sizeof(answer), 0) == sizeof(answer))
		return answer;
	zygote_end();
	return r == 0 ? -ETIMEDOUT : -EPIPE;
}

pid_t zygote_fork(const struct helper_opts *o, helper_fn run, int chan, int job, size_t size)
{
	struct request rq = {
		.opts = *o, .run = zygote_number_of((void (*)(void))run), .size = size};
	int fds[DESCRIPTORS_SENT] = {chan, job}, r;
	size_t n = 2;

	for (size_t i = 0; i < o->nfds; i++) {
		if (o->fds[i] < 0)
			continue;
		rq.given |= 1u << i;
		fds[n++] = o->fds[i];
	}
	r = zygote_start();
	if (r == 0)
		r = descriptors_send(mine.requests, &rq, sizeof(rq), fds, n);
	return r == 0 ? receive_answer() : r;
}
