// SPDX-License-Identifier: BSD-2-Clause
/* A pyprofd of one's own: see private.h. */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "client.h"

#define ARGS_MAX      512
#define READY_TRIES   1500
#define STEP_NS	      (20 * 1000 * 1000)
#define NO_PROGRAM    127
#define PROGRAM	      "pyprofd"
#define PROGRAM_COLON PROGRAM ": "

static int make_places(struct private_daemon *d, struct diag *diag)
{
	snprintf(d->dir, sizeof(d->dir), "/tmp/pyprofctl-XXXXXX");
	if (!mkdtemp(d->dir)) {
		d->dir[0] = '\0';
		return diag_errno(diag, errno, "cannot make a directory in /tmp");
	}
	snprintf(d->sock, sizeof(d->sock), "%s/sock", d->dir);
	snprintf(d->log, sizeof(d->log), "%s/log", d->dir);
	return 0;
}

/* Where pyprofd may be, as seen from this program: built beside it, or installed. */
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

static void run_child(const struct private_daemon *d, enum private_mode mode, char *const *argv)
{
	sigset_t none;
	int fd;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (mode == PRIVATE_BACKGROUND) {
		setsid();
		fd = open(d->log, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			dup2(fd, STDERR_FILENO);
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(fd, STDIN_FILENO);
		dup2(fd, STDOUT_FILENO);
	}
	exec_beside(argv);
	execvp(PROGRAM, argv);
	_exit(NO_PROGRAM);
}

int private_start(struct private_daemon *d, enum private_mode mode, char *const *args,
		  struct diag *diag)
{
	const char *argv[ARGS_MAX + 4] = {PROGRAM, "--socket", d->sock};
	size_t n = 3;
	int r;

	*d = (struct private_daemon){0};
	for (; *args; args++) {
		if (n == ARGS_MAX)
			return diag_set(diag, -E2BIG, PYP_EXIT_USAGE, "use a script",
					"the command has too many arguments");
		argv[n++] = *args;
	}
	r = make_places(d, diag);
	if (r < 0)
		return r;
	d->pid = fork();
	if (d->pid == 0)
		run_child(d, mode, (char *const *)argv);
	if (d->pid > 0)
		return 0;
	d->pid = 0;
	r = diag_errno(diag, errno, "cannot start " PROGRAM);
	private_end(d);
	return r;
}

/* The last line that it said. */
static void last_words(const struct private_daemon *d, char *out, size_t size)
{
	_cleanup_fclose_ FILE *f = fopen(d->log, "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0, skip;

	snprintf(out, size, "it said nothing");
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
		return diag_set(diag, -ENOENT, PYP_EXIT_FAILURE,
				"install it beside pyprofctl, or where PATH finds it",
				"cannot find " PROGRAM);
	last_words(d, words, sizeof(words));
	if (code < PYP_EXIT_FAILURE || code > PYP_EXIT_BUSY)
		code = PYP_EXIT_FAILURE;
	return diag_set(diag, -ECHILD, (enum pyp_exit)code, "", PROGRAM " has ended: %s", words);
}

int private_ready(struct private_daemon *d, struct diag *diag)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	_cleanup_(client_freep) struct client *c = NULL;
	int r, status;

	r = client_open(d->sock, &c, diag);
	if (r < 0)
		return r;
	for (int i = 0; i < READY_TRIES; i++) {
		if (client_request(c, "GET", "/v1/ping", NULL, NULL, NULL) == 0)
			return 0;
		if (waitpid(d->pid, &status, WNOHANG) == d->pid)
			return ended_early(d, status, diag);
		nanosleep(&step, NULL);
	}
	return diag_set(diag, -ETIMEDOUT, PYP_EXIT_FAILURE, "", PROGRAM " does not answer");
}

int private_wait(struct private_daemon *d)
{
	int status = 0;

	/* the terminal sends SIGINT to both of us: it is the daemon's to act on */
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
	if (!d->dir[0])
		return;
	/* killed, it leaves its socket and its lock behind */
	unlink(d->log);
	unlink(d->sock);
	snprintf(d->log, sizeof(d->log), "%s/sock.lock", d->dir);
	unlink(d->log);
	rmdir(d->dir);
	d->dir[0] = '\0';
}
