// SPDX-License-Identifier: BSD-2-Clause
/*
 * The README's five minutes, as a new user goes through them: its commands are read from it and run
 * in order, against a service with Flask and one with asyncio (aiohttp) under light load. Each has
 * the output that the README promises, and no request fails.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/daemon.h"
#include "harness/interpreters.h"
#include "harness/patience.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"

#define PYTHON	    "/usr/bin/python3"
#define PID	    "4242" /* in the README */
#define OUTPUTS	    3
#define COMMAND_MAX 1024

/* A command of the README, and what its output or its file contains */
struct step {
	const char *command;	/* its beginning, after "build/" */
	const char *instead[2]; /* a part, and what is run in its place: shorter times */
	const char *file;	/* that it writes; NULL: none */
	const char *outputs[OUTPUTS];
};

/* In the README's order; a command of the README that is not here fails the test. */
static const struct step steps[] = {
	{"pyprofctl doctor", {NULL}, NULL, {"expected", "trace", "sample"}},
	{"pyprofctl dump", {NULL}, NULL, {"MainThread", "walk_service.py"}},
	{"pyprofd --pid", {NULL}, NULL, {NULL}},
	{"pyprofctl snapshot --clock wall --busy", {NULL}, NULL, {"handle_request", "cumtime"}},
	{"pyprofctl snapshot --since-last", {NULL}, NULL, {"function calls", "handle_request"}},
	{"pyprofctl snapshot -o now.html", {NULL}, "now.html", {"<html", "handle_request"}},
	{"pyprofctl snapshot -o now.json", {NULL}, "now.json", {"pyprofd", "handle_request"}},
	{"pyprofctl snapshot", {NULL}, NULL, {"function calls", "handle_request", "ncalls"}},
	{"pyprofctl top", {"top", "top -n 1"}, NULL, {"1 traced", "CALLS/S", "walk_service.py"}},
	{"pyprofctl ui", {"ctl ui", "ctl ui --no-open"}, NULL, {"http://127.0.0.1:"}},
	{"pyprofctl tree", {NULL}, NULL, {"handle_request", "prices", "cumtime"}},
	{"pyprofctl lines", {NULL}, NULL, {"by source line", "walk_service.py"}},
	{"pyprofctl detach", {NULL}, NULL, {NULL}},
	{"pyprofctl attach --exact", {"--exact", "--exact --yes"}, NULL, {"attached"}},
	{"pyprofctl waits", {NULL}, NULL, {"Waiting:", "handle_request"}},
	{"pyprofctl coroutines", {NULL}, NULL, {"suspended", "walk_service.py"}},
	{"pyprofctl timeline -d",
	 {"-d 2", "-d 0.5"},
	 "calls.json",
	 {"traceEvents", "handle_request"}},
	{"pyprofctl timeline --trigger", {NULL}, "before.json", {"traceEvents", "handle_request"}},
	{"pyprofctl slow", {"-d 60", "-d 1"}, NULL, {"#1", "handle_request", " ms wall"}},
	{"pyprofctl objects", {"30s", "1s"}, NULL, {"objects", "+count"}},
	{"pyprofctl stop", {NULL}, NULL, {NULL}},
	{"pyprofctl shutdown", {NULL}, NULL, {NULL}},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static struct pyprofd d;
static char *dir; /* working directory of the commands; build is a link in it */
static pid_t service, load;
static char pid[16];

/* Run walk_service.py with these arguments, its output in a file of the directory. */
static pid_t start(const char *output, const char *kind, const char *port, const char *stop)
{
	char script[PATH_MAX], path[PATH_MAX];
	pid_t child;

	snprintf(script, sizeof(script), "%s/tests/targets/walk_service.py", getenv("PYPROF_TOP"));
	snprintf(path, sizeof(path), "%s/%s", dir, output);
	child = fork();
	if (child == 0) {
		int out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out, 1);
		dup2(out, 2);
		execl(PYTHON, "python3", script, kind, port, stop, (char *)NULL);
		_exit(127);
	}
	cr_assert(child > 0);
	return child;
}

/* The first line of a file of the directory, once it is there */
static void wait_for_line(const char *name, char line[64])
{
	char path[PATH_MAX], *text = NULL;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	while (!text || !strchr(text, '\n')) {
		cr_assert(!patience_over(), "%s: %s", name, text ? text : "");
		free(text);
		patience_step();
		text = file_text(path, NULL);
	}
	snprintf(line, 64, "%.*s", (int)strcspn(text, "\n"), text);
	free(text);
}

static void set_up(const char *kind, const char *module)
{
	char port[64], build[PATH_MAX], link[PATH_MAX], stop[PATH_MAX], import[64];

	caps_require_bpf();
	snprintf(import, sizeof(import), "import %s", module);
	free(tool_run((const char *[]){PYTHON, "-c", import, NULL}));
	dir = temp_dir_new();
	pyprofd_init(&d);
	d.defaults = true;
	cr_assert(realpath(getenv("PYPROF_BUILD"), build));
	snprintf(link, sizeof(link), "%s/build", dir);
	cr_assert_eq(symlink(build, link), 0);
	cr_assert_eq(setenv("PYPROFD_SOCKET", d.sock, 1), 0);
	service = start("port", kind, NULL, NULL);
	pid_text(pid, service);
	wait_for_line("port", port);
	snprintf(stop, sizeof(stop), "%s/stop", dir);
	load = start("load", "load", port, stop);
}

/* The load has the last word: all requests were answered as they should be. */
static void end_load(void)
{
	char line[64], path[PATH_MAX];
	unsigned int requests = 0, failed = 1;
	int status;

	snprintf(path, sizeof(path), "%s/stop", dir);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	wait_for_line("load", line);
	cr_assert(sscanf(line, "requests %u failed %u", &requests, &failed) == 2, "%s", line);
	cr_assert(requests > 0 && failed == 0, "%s", line);
	waitpid(load, &status, 0);
	cr_assert_eq(waitpid(service, &status, WNOHANG), 0, "the service still runs");
	kill(service, SIGKILL);
	waitpid(service, &status, 0);
	temp_dir_remove(dir);
}

/* Replace all occurrences. */
static void replace(char command[COMMAND_MAX], const char *what, const char *by)
{
	char old[COMMAND_MAX];
	size_t n = 0;

	memcpy(old, command, sizeof(old));
	for (const char *p = old; *p && n + strlen(by) + 1 < COMMAND_MAX;) {
		bool here = strncmp(p, what, strlen(what)) == 0;

		n += (size_t)snprintf(command + n, COMMAND_MAX - n, "%.*s", here ? INT_MAX : 1,
				      here ? by : p);
		p += here ? strlen(what) : 1;
	}
}

static char *run(const char *command)
{
	char line[COMMAND_MAX + PATH_MAX], *out;
	int status;

	snprintf(line, sizeof(line), "cd %s && %s", dir, command);
	out = tool_try((const char *[]){"sh", "-c", line, NULL}, &status);
	cr_assert_eq(status, 0, "%s: %d: %s", command, status, out);
	return out;
}

/* The text in which a step's outputs are: to be freed */
static char *output_of(const struct step *s, const char *command)
{
	char path[PATH_MAX], *out, *text;

	out = run(command);
	if (!s->file)
		return out;
	free(out);
	snprintf(path, sizeof(path), "%s/%s", dir, s->file);
	text = file_text(path, NULL);
	cr_assert(text, "%s wrote no %s", command, s->file);
	return text;
}

/* The first of a step's outputs that a text does not have; NULL: it has all. */
static const char *missing(const struct step *s, const char *text)
{
	for (int i = 0; i < OUTPUTS && s->outputs[i]; i++)
		if (!strstr(text, s->outputs[i]))
			return s->outputs[i];
	return NULL;
}

/*
 * Some show what happens within a given time. Where the machine let the service do too little meanwhile, the user
 * would ask again.
 */
static void run_until_shown(const struct step *s, const char *command)
{
	char *text = output_of(s, command);
	const char *lacks;

	while ((lacks = missing(s, text))) {
		cr_assert(!patience_over(), "%s: no '%s' in: %.4000s", command, lacks, text);
		free(text);
		ctl_step();
		text = output_of(s, command);
	}
	free(text);
}

/* A server that prints its address, and runs until Ctrl-C */
static void run_server(const struct step *s, const char *command)
{
	char line[COMMAND_MAX + PATH_MAX], out[256];
	int fds[2], status;
	pid_t child;

	snprintf(line, sizeof(line), "cd %s && exec %s", dir, command);
	assert_ok(pipe2(fds, O_CLOEXEC));
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 1);
		execl("/bin/sh", "sh", "-c", line, NULL);
		_exit(127);
	}
	close(fds[1]);
	interpreter_line(fds[0], out, sizeof(out));
	cr_assert(!missing(s, out), "%s", out);
	kill(child, SIGINT);
	cr_assert(waitpid(child, &status, 0) == child && status == 0, "%x", (unsigned int)status);
	close(fds[0]);
}

static const struct step *step_of(const char *command)
{
	for (size_t i = 0; i < STEPS; i++)
		if (strncmp(command, "build/", 6) == 0 &&
		    strncmp(command + 6, steps[i].command, strlen(steps[i].command)) == 0)
			return &steps[i];
	cr_assert_fail("the test does not know this command of the README: %s", command);
	return NULL;
}

/* The daemon runs in the background; as it has the socket of PYPROFD_SOCKET, so has the client. */
static void do_step(const char *readme)
{
	const struct step *s = step_of(readme);
	char command[COMMAND_MAX];

	snprintf(command, sizeof(command), "%s", readme);
	replace(command, PID, pid);
	if (s->instead[0]) {
		cr_assert(strstr(command, s->instead[0]), "%s", command);
		replace(command, s->instead[0], s->instead[1]);
	}
	if (strstr(command, "pyprofd --pid")) {
		cr_assert(strchr(command, '&'), "%s", command);
		pyprofd_launch(&d, "--pid", pid, NULL);
		pyprofd_ready(&d);
	} else if (strcmp(s->command, "pyprofctl ui") == 0) {
		run_server(s, command);
	} else {
		run_until_shown(s, command);
	}
}

/* The block of commands below "Five minutes", without comments. Returns the number of commands. */
static size_t walk(void)
{
	char path[PATH_MAX], *text, *line, *rest, *end;
	size_t n = 0;

	snprintf(path, sizeof(path), "%s/README.md", getenv("PYPROF_TOP"));
	text = file_text(path, NULL);
	cr_assert(text, "%s", path);
	line = strstr(text, "## Five minutes");
	cr_assert(line);
	line = strstr(line, "```\n");
	end = line ? strstr(line + 4, "```\n") : NULL;
	cr_assert(end);
	*end = '\0';
	for (line = strtok_r(line + 4, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *comment = strstr(line, " # ");

		if (comment)
			*comment = '\0';
		if (strncmp(line, "export PYPROFD_SOCKET=", 22) == 0)
			continue;
		do_step(line);
		n++;
	}
	free(text);
	return n;
}

/* What the README names beside the block */
static void check_others(void)
{
	char command[COMMAND_MAX], path[PATH_MAX], *out;

	out = run("build/pyprofctl report now.json");
	cr_assert(strstr(out, "handle_request"), "%s", out);
	free(out);
	out = run("build/pyprofctl diff now.json now.json");
	cr_assert(strstr(out, "now.json"), "%s", out);
	free(out);
	out = run("build/pyprofctl ps");
	cr_assert(strstr(out, pid) && strstr(out, "walk_service.py"), "%s", out);
	free(out);
	snprintf(command, sizeof(command), "build/pyprofctl record --pid %s -d 0.2 -o out.html",
		 pid);
	free(run(command));
	snprintf(path, sizeof(path), "%s/out.html", dir);
	cr_assert_eq(access(path, R_OK), 0);
}

static void check_walk(const char *kind, const char *module)
{
	struct ran r;

	set_up(kind, module);
	cr_assert(walk() >= STEPS, "the README has all these commands");
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 0, "%s", r.err);
	ran_free(&r);
	check_others();
	end_load();
	pyprofd_deinit(&d);
}

Test(walk, flask)
{
	check_walk("flask", "flask");
}

Test(walk, asyncio)
{
	check_walk("asyncio", "aiohttp");
}
