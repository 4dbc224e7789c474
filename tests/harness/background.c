// SPDX-License-Identifier: BSD-2-Clause
/* Client commands in the background: see background.h. */
#include "harness/background.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "harness/patience.h"
#include "harness/python.h"
#include "harness/test.h"

#define ARGS_MAX 32

static void child_main(const struct pyprofd *d, const char *errors, const char *const *args)
{
	const char *argv[ARGS_MAX + 4] = {"pyprofctl", "--socket", d->sock};
	char program[4096];

	for (size_t i = 0; args[i] && i < ARGS_MAX; i++)
		argv[i + 3] = args[i];
	ctl_add_options(d, argv, ARGS_MAX + 3);
	snprintf(program, sizeof(program), "%s/pyprofctl", getenv("PYPROF_BUILD"));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (errors)
		(void)!freopen(errors, "w", stderr);
	execv(program, (char *const *)argv);
	_exit(127);
}

pid_t background_start(const struct pyprofd *d, const char *errors, bool (*records)(void),
		       const char *const *args)
{
	pid_t child = fork();

	cr_assert(child >= 0);
	if (child == 0)
		child_main(d, errors, args);
	while (records && !records()) {
		cr_assert(waitpid(child, NULL, WNOHANG) == 0, "pyprofctl has ended");
		cr_assert(!patience_over(), "nothing is being recorded");
		patience_step();
	}
	return child;
}

int background_end(pid_t child, int signal)
{
	int status;

	if (signal)
		kill(child, signal);
	cr_assert(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Its socket has no name, but the command has its file open. */
static bool find_socket(const char *dir, char *sock, size_t size)
{
	DIR *fds = opendir(dir);
	struct dirent *e;
	bool found = false;

	while (fds && !found && (e = readdir(fds))) {
		char to[128] = "";

		if (readlinkat(dirfd(fds), e->d_name, to, sizeof(to) - 1) > 0 &&
		    strncmp(to, "/tmp/pyprofctl-", 15) == 0) {
			snprintf(sock, size, "%.60s/%.20s", dir, e->d_name);
			found = true;
		}
	}
	if (fds)
		closedir(fds);
	return found;
}

struct pyprofd background_private(pid_t child)
{
	struct pyprofd ret = {0};
	char dir[64];

	snprintf(dir, sizeof(dir), "/proc/%d/fd", (int)child);
	while (!find_socket(dir, ret.sock, sizeof(ret.sock))) {
		cr_assert(waitpid(child, NULL, WNOHANG) == 0, "pyprofctl has ended");
		cr_assert(!patience_over(), "it has no daemon");
		patience_step();
	}
	return ret;
}

static size_t traced_by(const struct pyprofd *d)
{
	json_t *status = ctl_status(d), *target;
	size_t i, n = 0;

	json_array_foreach(json_object_get(status, "targets"), i, target)
		n += strcmp(json_string_value(json_object_get(target, "state")), "tracing") == 0;
	json_decref(status);
	return n;
}

void background_until_traced(pid_t child, size_t targets)
{
	const struct pyprofd own = background_private(child);

	while (traced_by(&own) < targets) {
		cr_assert(!patience_over(), "%zu targets are traced", traced_by(&own));
		ctl_step();
	}
}

json_t *background_api(const struct pyprofd *d, const char *method, const char *path, json_t *body)
{
	struct client *c;
	struct diag diag = {0};
	json_t *answer = NULL;

	assert_ok(client_open(d->sock, &c, &diag));
	assert_diag_ok(client_request(c, method, path, body, &answer, &diag), &diag);
	client_free(c);
	json_decref(body);
	return answer;
}

void background_judge(const struct pyprofd *d, const char *script)
{
	struct interpreter it = traced_newest();
	char *out = python_run(it.exe, script, d->dir);

	cr_assert_str_eq(out, "fine\n", "%s", out);
	free(out);
}

void background_finish(struct pyprofd *d, struct traced *t)
{
	struct ran r;

	free(ctl_ok(d, "shutdown", NULL));
	r = pyprofd_wait(d);
	cr_assert_eq(r.status, 0, "%s", r.err);
	ran_free(&r);
	traced_finish(t);
}
