// SPDX-License-Identifier: BSD-2-Clause
/* The list of Python processes, by `pyprofctl ps --json`: see ui_processes.h. */
#include "ui_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define LIST_MAX   ((size_t)16 << 20)
#define PIECE	   ((size_t)64 << 10)
#define DEADLINE_S 60

static int start(int out, pid_t *ret)
{
	static const char *const argv[] = {"pyprofctl", "ps", "--json", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int err;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	err = posix_spawn(ret, "/proc/self/exe", &actions, &attr, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

/* One piece more, until end of file. 0: complete. 1: there may be more. */
static int read_piece(int fd, uint64_t due_ns, char **text, size_t *n)
{
	const uint64_t now = clock_monotonic_ns();
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char *longer;
	ssize_t got;

	if (*n + PIECE > LIST_MAX)
		return -EFBIG;
	if (now >= due_ns || poll(&p, 1, (int)((due_ns - now) / 1000000) + 1) == 0)
		return -ETIMEDOUT;
	longer = realloc(*text, *n + PIECE);
	if (!longer)
		return -ENOMEM;
	*text = longer;
	got = read(fd, *text + *n, PIECE);
	if (got < 0)
		return errno == EINTR ? 1 : -errno;
	*n += (size_t)got;
	return got > 0;
}

int ui_processes(char **ret, size_t *ret_n, struct diag *diag)
{
	const uint64_t due_ns = clock_monotonic_ns() + DEADLINE_S * CLOCK_NS_PER_S;
	_cleanup_close_ int in = -1;
	_cleanup_free_ char *text = NULL;
	int fds[2], status = 0, r;
	size_t n = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return diag_errno(diag, errno, "cannot list processes");
	in = fds[0];
	r = start(fds[1], &pid);
	close(fds[1]);
	if (r < 0)
		return diag_errno(diag, -r, "cannot list processes");
	do
		r = read_piece(in, due_ns, &text, &n);
	while (r > 0);
	if (r < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r == 0 && status)
		r = -EIO;
	if (r < 0)
		return diag_errno(diag, -r, "cannot list processes");
	*ret = TAKE_PTR(text);
	*ret_n = n;
	return 0;
}
