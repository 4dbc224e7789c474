// SPDX-License-Identifier: BSD-2-Clause
/* Client commands in the background: see background.h. */
#include "harness/background.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "harness/patience.h"
#include "harness/python.h"
#include "harness/sites.h"
#include "harness/test.h"

#define ARGS_MAX 32

static void child_main(const struct pyprofd *d, const char *errors, const char *const *args)
{
	const char *argv[ARGS_MAX + 4] = {"pyprofctl", "--socket", d->sock};
	char program[4096];

	for (size_t i = 0; args[i] && i < ARGS_MAX; i++)
		argv[i + 3] = args[i];
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

bool background_probed(pid_t pid)
{
	struct sites sites;

	sites_find(&sites, pid);
	return sites_changed(&sites, pid) == (int)sites.n;
}

void background_go_when_probed(struct traced *t)
{
	struct sites sites;
	pid_t child;

	sites_find(&sites, t->pid);
	child = fork();
	cr_assert(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (sites_changed(&sites, t->pid) != (int)sites.n && !patience_over())
			patience_step();
		traced_go(t);
		_exit(0);
	}
	traced_close(t);
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
