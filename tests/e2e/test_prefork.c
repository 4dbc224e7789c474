// SPDX-License-Identifier: BSD-2-Clause
/*
 * A prefork server under load: gunicorn's master and four workers; two exist before the attach, and
 * two are forked while it is traced. With --follow, every request is in some worker's profile, and
 * the profiles add up. Without it, no breakpoint is left in a worker that inherited some.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"
#include "target/target.h"

#define WORKERS	 4
#define REQUESTS 200

static struct pyprofd d;
static pid_t master, workers[WORKERS + 1];
static char pid[16], sock[128], file[128];

static const char *in_dir(const char *name, char out[128])
{
	return pyprofd_file(&d, name, out, 128);
}

/* The server ------------------------------------------------------------------------------- */

static void run_server(pid_t parent)
{
	char dir[512], bind[160], log[128];
	const char *argv[] = {"gunicorn", "--workers",	 "2",	    "--bind",
			      bind,	  "--chdir",	 dir,	    "--log-file",
			      log,	  "--log-level", "warning", "wsgi_app:app",
			      NULL};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(126);
	traced_path("tests", "targets", dir, sizeof(dir));
	snprintf(bind, sizeof(bind), "unix:%s", sock);
	in_dir("gunicorn.log", log);
	setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static size_t count_workers(void)
{
	return target_children(master, workers, WORKERS + 1);
}

static bool are_there(void *ctx)
{
	return count_workers() == *(size_t *)ctx;
}

static void until_workers(size_t n)
{
	patience_until(are_there, &n, "the server's workers");
}

/* Run the load; returns the number of answered requests and of workers that answered. */
static void load(unsigned int *ret_answered, unsigned int *ret_workers)
{
	char script[512], requests[16];
	const char *argv[] = {"/usr/bin/python3", script, sock, requests, "4", NULL};
	char *said;

	traced_path("tests/targets", "wsgi_load.py", script, sizeof(script));
	snprintf(requests, sizeof(requests), "%d", REQUESTS);
	said = tool_run(argv);
	cr_assert(sscanf(said, "answered %u workers %u", ret_answered, ret_workers) == 2, "%s",
		  said);
	free(said);
}

static bool listens(void *ctx)
{
	(void)ctx;
	cr_assert(waitpid(master, NULL, WNOHANG) == 0, "gunicorn has ended");
	return access(sock, F_OK) == 0 && count_workers() == 2;
}

static void setup(void)
{
	caps_require_bpf();
	tool_need("gunicorn");
	pyprofd_init(&d);
	in_dir("web", sock);
	master = fork();
	cr_assert(master >= 0);
	if (master == 0)
		run_server(getppid());
	pid_text(pid, master);
	patience_until(listens, NULL, "gunicorn");
}

static void teardown(void)
{
	if (master > 0) {
		kill(master, SIGKILL);
		waitpid(master, NULL, 0);
	}
	unlink(sock);
	pyprofd_deinit(&d);
}

TestSuite(prefork, .init = setup, .fini = teardown);

static void end_server(void)
{
	int status;

	kill(master, SIGTERM);
	cr_assert(waitpid(master, &status, 0) == master);
	master = 0;
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "gunicorn: %#x", (unsigned)status);
}

/* Add two workers to the two at the beginning. */
static void add_workers(void)
{
	kill(master, SIGTTIN);
	until_workers(3);
	kill(master, SIGTTIN);
	until_workers(WORKERS);
}

/* With --follow ---------------------------------------------------------------------------- */

static bool all_are_traced(void *ctx)
{
	json_t *root = ctl_status(&d), *targets = json_object_get(root, "targets"), *t;
	size_t i, n = 0;

	(void)ctx;
	json_array_foreach(targets, i, t)
		n += strcmp(json_string_value(json_object_get(t, "state")), "tracing") == 0;
	json_decref(root);
	return n == 1 + WORKERS;
}

/* Returns a profile's number of calls of a function. */
static json_int_t calls_of(const char *text, const char *name)
{
	json_t *root = json_loads(text, 0, NULL), *f;
	json_int_t calls = 0;
	size_t i;

	cr_assert(root, "%s", text);
	cr_assert(json_is_true(json_object_get(root, "exact")), "%s", text);
	json_array_foreach(json_object_get(root, "functions"), i,
			   f) if (strcmp(json_string_value(json_object_get(f, "name")), name) ==
					  0 &&
				  strstr(json_string_value(json_object_get(f, "file")), "wsgi_app"))
		calls += json_integer_value(json_object_get(f, "ncalls"));
	json_decref(root);
	return calls;
}

static json_int_t snapshot_calls(const char *worker, const char *name)
{
	char *text = worker ? ctl_ok(&d, "snapshot", "-f", "json", "--pid", worker, NULL)
			    : ctl_ok(&d, "snapshot", "-f", "json", NULL);
	json_int_t calls = calls_of(text, name);

	free(text);
	return calls;
}

static void check_sums(void)
{
	json_int_t handled = 0, rendered = 0;

	count_workers();
	for (int i = 0; i < WORKERS; i++) {
		char worker[16];
		json_int_t n;

		pid_text(worker, workers[i]);
		n = snapshot_calls(worker, "handle");
		fprintf(stderr, "  worker %s: %lld requests\n", worker, (long long)n);
		handled += n;
		rendered += snapshot_calls(worker, "render");
	}
	cr_assert_eq(handled, REQUESTS, "the workers' %lld", (long long)handled);
	cr_assert_eq(rendered, REQUESTS);
	cr_assert_eq(snapshot_calls(NULL, "handle"), REQUESTS);
	cr_assert_eq(snapshot_calls(pid, "handle"), 0, "the master handles nothing");
}

static void follow_in(const char *mode)
{
	unsigned int answered, by;
	struct ran r;
	char *text;

	pyprofd_launch(&d, "--pid", pid, "--follow-children", "--mode", mode, "-o",
		       in_dir("p.json", file), NULL);
	pyprofd_ready(&d);
	add_workers();
	patience_until(all_are_traced, NULL, "all workers to be traced");
	load(&answered, &by);
	cr_assert_eq(answered, REQUESTS);
	fprintf(stderr, "  %u requests answered by %u workers\n", answered, by);
	check_sums();
	/* when the last target has ended, the daemon ends by itself */
	end_server();
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 0, "%s", r.err);
	cr_assert_str_eq(r.err, "");
	ran_free(&r);
	text = file_text(file, NULL);
	cr_assert(text);
	cr_assert_eq(calls_of(text, "handle"), REQUESTS);
	free(text);
}

Test(prefork, followed)
{
	follow_in("trace");
}

Test(prefork, followed_while_counting)
{
	follow_in("count");
}

/* Without --follow ------------------------------------------------------------------------- */

static void assert_workers_reported(const char *err, bool said)
{
	cr_assert_eq(strstr(err, "its 2 Python child processes") != NULL, said, "%s", err);
	cr_assert_eq(strstr(err, "--follow-children includes them") != NULL, said, "%s", err);
}

static void run_reports(struct ran r, bool said)
{
	cr_assert_eq(r.status, 0, "%s", r.err);
	assert_workers_reported(r.err, said);
	ran_free(&r);
}

/* An attach to the master without its workers reports them. */
Test(prefork, workers_are_named)
{
	char one[16], two[16];

	in_dir("p.json", file);
	run_reports(ctl(&d, "record", "--mode", "sample", "--pid", pid, "-d", "0.1", "-o", file,
			NULL),
		    true);
	run_reports(ctl(&d, "record", "--mode", "sample", "--pid", pid, "-d", "0.1", "-o", file,
			"--follow-children", NULL),
		    false);
	pyprofd_launch(&d, "--mode", "sample", "--pid", pid, "-d", "0.1", "-o", file, NULL);
	run_reports(pyprofd_wait(&d), true);
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	run_reports(ctl(&d, "attach", "--mode", "sample", pid, NULL), true);
	run_reports(ctl(&d, "detach", pid, NULL), false);
	count_workers();
	pid_text(one, workers[0]);
	pid_text(two, workers[1]);
	run_reports(ctl(&d, "attach", "--mode", "sample", pid, one, two, NULL), false);
	run_reports(ctl(&d, "detach", pid, NULL), false);
	run_reports(ctl(&d, "detach", one, NULL), false);
	run_reports(ctl(&d, "detach", two, NULL), false);
	run_reports(ctl(&d, "attach", "--mode", "sample", "--follow-children", pid, NULL), false);
	run_reports(ctl(&d, "shutdown", NULL), false);
	ran_free(&(struct ran[]){pyprofd_wait(&d)}[0]);
}

static bool workers_are_clean(void *ctx)
{
	const struct sites *sites = ctx;

	for (size_t i = 0, n = count_workers(); i < n; i++)
		if (sites_changed(sites, workers[i]))
			return false;
	return true;
}

Test(prefork, not_followed)
{
	unsigned int answered, by;
	struct sites sites;
	struct ran r;
	char *text;

	sites_find(&sites, master);
	pyprofd_launch(&d, "--pid", pid, "-o", in_dir("p.json", file), NULL);
	pyprofd_ready(&d);
	add_workers();
	patience_until(workers_are_clean, &sites, "workers without breakpoints");
	cr_assert_eq(sites_changed(&sites, master), (int)sites.n, "the master's are on");
	load(&answered, &by);
	cr_assert_eq(answered, REQUESTS);
	cr_assert(workers_are_clean(&sites));
	end_server();
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 0, "%s", r.err);
	ran_free(&r);
	text = file_text(file, NULL);
	cr_assert(text);
	cr_assert_eq(calls_of(text, "handle"), 0);
	free(text);
}
