// SPDX-License-Identifier: BSD-2-Clause
/*
 * The daemon in a pid namespace, as in a container: sampling finds a target in the same namespace
 * or in one below, and does not mistake another process for it.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/patience.h"
#include "harness/place.h"
#include "harness/test.h"
#include "harness/traced.h"

#define SAMPLES 30u /* number of samples to wait for, at 1000 per second of CPU time */

TestSuite(pidns, .init = caps_require_bpf);

static bool is_sampled(struct traced *t, void *ctx)
{
	struct snapshot *s = traced_snapshot(t);
	bool enough = s->targets[0].events >= SAMPLES;

	(void)ctx;
	snapshot_free(s);
	return enough;
}

/* Sample load.py in a place below this one, and check its figures. */
static void sample(const char *exe, const struct place *at)
{
	struct traced t;

	traced_place(at);
	traced_ready(&t, NULL, exe, "load.py", NULL);
	t.mode = (struct mode_choice){.mode = MODE_SAMPLE, .rate = 999};
	traced_attach(&t);
	traced_until(&t, is_sampled, NULL, "samples");
	traced_say(&t, "stop");
	traced_expect(&t, "checked ok");
	traced_finish(&t);
	traced_place(NULL);
}

#define TOO_LONG 3

static void on_alarm(int signo)
{
	(void)signo;
	_exit(TOO_LONG);
}

/* Run as process 1 of the namespace, so that the target ends with it. */
static _Noreturn void inside(const char *exe, const struct place *at)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, on_alarm);
	alarm((unsigned int)patience_left().tv_sec + 1);
	sample(exe, at);
	_exit(0);
}

static void in_namespace(const struct place *at)
{
	const struct interpreter py = traced_newest();
	const struct place own = {0};
	int status;
	pid_t pid = place_fork(&own);

	if (pid == 0)
		inside(py.exe, at);
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_assert(!WIFEXITED(status) || WEXITSTATUS(status) != TOO_LONG, "no samples");
	cr_assert(status == 0, "wait status %#x", (unsigned int)status);
}

Test(pidns, samples_a_target_in_the_same_namespace)
{
	in_namespace(NULL);
	check_no_leaks();
}

Test(pidns, samples_a_target_in_a_namespace_below)
{
	const struct place below = {0};

	in_namespace(&below);
	check_no_leaks();
}
