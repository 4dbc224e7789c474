// SPDX-License-Identifier: BSD-2-Clause
/* A private pyprofd: see private.h. */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/helper.h"
#include "base/log.h"
#include "base/sockpath.h"
#include "client.h"

#define ARGS_MAX      512
#define READY_TRIES   1500
#define READY_S	      30
#define BACKLOG	      64
#define LISTEN_FD     3 /* SD_LISTEN_FDS_START */
#define STEP_NS	      (20 * 1000 * 1000)
#define NO_PROGRAM    127
#define PROGRAM	      "pyprofd"
#define PROGRAM_COLON PROGRAM ": "
#define INSTALL_HINT  "install it in pyprofctl's directory or in PATH"

/*
 * Make a listening socket and unlink its name at once. It is then reachable only through an O_PATH
 * descriptor of its file, by this process and its user, and leaves no file behind if the processes
 * are killed.
 */
static int listen_nameless(const char *dir, int *ret_path_fd)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;
	char path[64];
	int r = 0;

	snprintf(path, sizeof(path), "%s/sock", dir);
	if (sockpath_addr(path, &addr, NULL) < 0)
		return -ENAMETOOLONG;
	if (fd < 0 || fchmod(fd, 0600) < 0 ||
	    bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	*ret_path_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_path_fd < 0 || listen(fd, BACKLOG) < 0)
		r = -errno;
	unlink(path);
	return r < 0 ? r : TAKE_FD(fd);
}

/* Uses a directory that exists only during this call. Signals are blocked meanwhile. */
static int make_socket(struct private_daemon *d, struct diag *diag)
{
	char dir[] = "/tmp/pyprofctl-XXXXXX";
	sigset_t all, old;
	int fd, path_fd = -1;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	fd = mkdtemp(dir) ? listen_nameless(dir, &path_fd) : -errno;
	rmdir(dir);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (path_fd >= 0) {
		d->sock_fd = path_fd;
		snprintf(d->sock, sizeof(d->sock), "/proc/self/fd/%d", path_fd);
	}
	return fd < 0 ? diag_errno(diag, -fd, "cannot create a socket in /tmp") : fd;
}

/* pyprofd's path relative to this program, in the build tree and installed */
static void exec_beside(char *const *argv)
{
	static const char *const places[] = {"/" PROGRAM, "/../sbin/" PROGRAM};
	char self[4096], path[4200], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", self, places[i]);
		execv(path, argv);
	}
}

/* Pass the socket in the way that sd_listen_fds(3) expects. */
static void pass_socket(int fd)
{
	char pid[16];

	if (fd == LISTEN_FD)
		fcntl(fd, F_SETFD, 0);
	else
		dup2(fd, LISTEN_FD);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	unsetenv("LISTEN_FDNAMES");
}

struct job {
	const struct private_daemon *daemon;
	enum private_mode mode;
	int sock;
	char *const *argv;
};

static void run_child(struct helper_side *side)
{
	const struct job *job = side->ctx;
	const struct private_daemon *d = job->daemon;
	const enum private_mode mode = job->mode;
	int fd;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	/* it writes its results before it ends */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != side->parent)
		_exit(NO_PROGRAM);
	if (mode == PRIVATE_BACKGROUND) {
		setsid();
		dup2(d->log_fd, STDERR_FILENO);
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(fd, STDIN_FILENO);
		dup2(fd, STDOUT_FILENO);
	}
	pass_socket(job->sock);
	exec_beside(job->argv);
	execvp(PROGRAM, job->argv);
	if (mode == PRIVATE_BACKGROUND)
		_exit(NO_PROGRAM);
	/* the status could be that of the program that pyprofd runs */
	log_error("cannot find " PROGRAM "; " INSTALL_HINT);
	_exit(PYP_EXIT_FAILURE);
}

static int collect(char *const *args, const char *argv[ARGS_MAX + 1], struct diag *diag)
{
	size_t n = 0;

	argv[n++] = PROGRAM;
	for (; *args; args++) {
		if (n == ARGS_MAX)
			return diag_set(diag, -E2BIG, PYP_EXIT_USAGE, "use a script",
					"the command has too many arguments");
		argv[n++] = *args;
	}
	argv[n] = NULL;
	return 0;
}

int private_start(struct private_daemon *d, enum private_mode mode, char *const *args,
		  struct diag *diag)
{
	const char *argv[ARGS_MAX + 1];
	_cleanup_close_ int sock = -1;
	struct job job = {.daemon = d, .mode = mode};
	struct helper h;
	int r;

	*d = (struct private_daemon){0};
	r = collect(args, argv, diag);
	if (r < 0)
		return r;
	sock = make_socket(d, diag);
	if (sock >= 0)
		d->log_fd = memfd_create("pyprofd-log", MFD_CLOEXEC);
	if (sock < 0 || d->log_fd < 0) {
		r = sock < 0 ? sock : diag_errno(diag, errno, "cannot create a memory file");
		d->log_fd = 0;
		private_end(d);
		return r;
	}
	job.sock = sock;
	job.argv = (char *const *)argv;
	r = helper_start(&(struct helper_opts){.flags = HELPER_EXECS}, run_child, &job, &h);
	if (r < 0) {
		r = diag_errno(diag, -r, "cannot start " PROGRAM);
		private_end(d);
		return r;
	}
	/* Only the daemon has the listening socket: once it ends, connecting fails. */
	d->pid = h.pid;
	(void)close(h.fd);
	return 0;
}

/* Get the last line of the daemon's log. */
static void last_log_line(const struct private_daemon *d, char *out, size_t size)
{
	int fd = lseek(d->log_fd, 0, SEEK_SET) < 0 ? -1 : fcntl(d->log_fd, F_DUPFD_CLOEXEC, 0);
	_cleanup_fclose_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0, skip;

	snprintf(out, size, "no message");
	while (f && getline(&line, &cap, f) > 0) {
		skip = strncmp(line, PROGRAM_COLON, strlen(PROGRAM_COLON)) == 0
			       ? strlen(PROGRAM_COLON)
			       : 0;
		line[strcspn(line, "\n")] = '\0';
		snprintf(out, size, "%s", line + skip);
	}
}

static int ended_early(struct private_daemon *d, int status, struct diag *diag)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : PYP_EXIT_FAILURE;
	char words[400];

	d->pid = 0;
	if (code == NO_PROGRAM)
		return diag_set(diag, -ENOENT, PYP_EXIT_FAILURE, INSTALL_HINT,
				"cannot find " PROGRAM);
	last_log_line(d, words, sizeof(words));
	if (code < PYP_EXIT_FAILURE || code > PYP_EXIT_BUSY)
		code = PYP_EXIT_FAILURE;
	return diag_set(diag, -ECHILD, (enum pyp_exit)code, "", PROGRAM " exited: %s", words);
}

int private_ready(struct private_daemon *d, struct diag *diag)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	_cleanup_(client_freep) struct client *c = NULL;
	int r, status;

	r = client_open(d->sock, &c, diag);
	if (r < 0)
		return r;
	client_set_timeout(c, READY_S);
	for (int i = 0; i < READY_TRIES; i++) {
		if (client_request(c, "GET", "/v1/ping", NULL, NULL, NULL) == 0)
			return 0;
		if (waitpid(d->pid, &status, WNOHANG) == d->pid)
			return ended_early(d, status, diag);
		nanosleep(&step, NULL);
	}
	return diag_set(diag, -ETIMEDOUT, PYP_EXIT_FAILURE, "", PROGRAM " does not respond");
}

int private_wait(struct private_daemon *d)
{
	int status = 0;

	/* the terminal sends SIGINT to both processes; the daemon handles it */
	signal(SIGINT, SIG_IGN);
	while (waitpid(d->pid, &status, 0) < 0 && errno == EINTR)
		;
	d->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : PYP_EXIT_FAILURE;
}

void private_end(struct private_daemon *d)
{
	if (d->pid > 0) {
		kill(d->pid, SIGTERM);
		while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
			;
		d->pid = 0;
	}
	if (d->sock_fd)
		close(d->sock_fd);
	if (d->log_fd)
		close(d->log_fd);
	d->sock_fd = d->log_fd = 0;
}
