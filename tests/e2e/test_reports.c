// SPDX-License-Identifier: BSD-2-Clause
/*
 * What people read: reports on a terminal and in files, of one and of several processes, intervals,
 * waits for work, calls of coroutines.
 */
#include <jansson.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static char script[128], saved[128];

/* More than 30 functions; a coroutine that is resumed; a thread that waits for connections. */
static const char program[] = "import asyncio, socket, sys, threading, time\n"
			      "for i in range(40):\n"
			      "    exec('def f%d(): pass' % i)\n"
			      "class Pause:\n"
			      "    def __await__(self):\n"
			      "        yield\n"
			      "async def request():\n"
			      "    await Pause()\n"
			      "    await Pause()\n"
			      "async def serve(n):\n"
			      "    for _ in range(n): await request()\n"
			      "def drive(n):\n"
			      "    c = serve(n)\n"
			      "    try:\n"
			      "        while True: c.send(None)\n"
			      "    except StopIteration: pass\n"
			      "def accept(s): s.accept()\n"
			      "def main():\n"
			      "    s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(1)\n"
			      "    t = threading.Thread(target=accept, args=(s,)); t.start()\n"
			      "    drive(50)\n"
			      "    for i in range(40): globals()['f%d' % i]()\n"
			      "    time.sleep(0.2)\n"
			      "    socket.create_connection(s.getsockname()).close(); t.join()\n"
			      "main()\n";

static void setup(void)
{
	FILE *f;

	pyprofd_init(&d);
	pyprofd_file(&d, "program.py", script, sizeof(script));
	pyprofd_file(&d, "saved.json", saved, sizeof(saved));
	f = fopen(script, "w");
	cr_assert(f && fputs(program, f) >= 0 && fclose(f) == 0);
}

static void teardown(void)
{
	pyprofd_deinit(&d);
}

TestSuite(reports, .init = setup, .fini = teardown);

static size_t lines_after(const char *text, const char *start)
{
	const char *p = strstr(text, start);
	size_t n = 0;

	cr_assert(p, "%s", text);
	for (; (p = strchr(p, '\n')); p++)
		n++;
	return n;
}

/* Runs `pyprofctl report` on a terminal of 100 columns and returns its output, to be freed. */
static char *at_terminal(const char *option, const char *pattern)
{
	const char *build = getenv("PYPROF_BUILD");
	struct winsize size = {.ws_row = 40, .ws_col = 100};
	char path[4096], *said = calloc(1, 1 << 16);
	size_t n = 0;
	pid_t child;
	int fd;

	snprintf(path, sizeof(path), "%s/pyprofctl", build ? build : "build");
	child = forkpty(&fd, NULL, NULL, &size);
	cr_assert(said && child >= 0);
	if (child == 0) {
		execl(path, path, "report", saved, option, pattern, NULL);
		_exit(127);
	}
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t k;

		cr_assert(poll(&p, 1, patience_left_ms()) == 1, "%s", said);
		k = read(fd, said + n, (1 << 16) - 1 - n);
		if (k <= 0)
			break;
		n += (size_t)k;
	}
	cr_assert_eq(waitpid(child, NULL, 0), child);
	close(fd);
	return said;
}

/* All rows in pstats' columns in a file; 30 rows, a percentage and resumptions on a terminal. */
static void on_a_terminal_and_in_a_file(void)
{
	char *file, *screen;

	file = ctl_ok(&d, "report", saved, NULL);
	cr_assert(strstr(file, "   Ordered by: cumulative time\n\n   ncalls  tottime  percall  "
			       "cumtime  percall filename:lineno(function)\n"),
		  "%s", file);
	cr_assert(strstr(file, "(f0)") && strstr(file, "(f39)"), "%s", file);
	cr_assert(strstr(file, "150 ") && strstr(file, "program.py:7(request)"), "%s", file);
	cr_assert(lines_after(file, "   process    ") <= 4, "%s", file);
	screen = at_terminal(NULL, NULL);
	cr_assert(strstr(screen, " to 30 due to restriction <30>"), "%s", screen);
	cr_assert(strstr(screen, " percent filename"), "%s", screen);
	cr_assert(lines_after(screen, "   process    ") <= 4 + 2, "wrapped at most twice: %s",
		  screen);
	free(file);
	free(screen);
	screen = at_terminal("program.py", NULL);
	cr_assert(strstr(screen, "   50+100 "), "%s", screen);
	free(screen);
	file = ctl_ok(&d, "report", saved, "-v", "--columns", "calls,resumed,percent", NULL);
	cr_assert(strstr(file, "   self-test  ") && strstr(file, " 100 "), "%s", file);
	cr_assert(strstr(file, " percent filename"), "%s", file);
	free(file);
}

static void waits_for_work_are_left_out(void)
{
	char *all, *busy, *tree;

	all = ctl_ok(&d, "report", saved, "--clock", "wall", NULL);
	cr_assert(strstr(all, " {wait}\n"), "%s", all);
	busy = ctl_ok(&d, "report", saved, "--clock", "wall", "--busy", NULL);
	cr_assert(!strstr(busy, " {wait}\n"), "%s", busy);
	cr_assert(strstr(busy, "waits for work are left out"), "%s", busy);
	tree = ctl_ok(&d, "report", saved, "--clock", "wall", "-f", "tree", NULL);
	cr_assert(strstr(tree, "   Calling contexts of 2 threads together"), "%s", tree);
	cr_assert(strstr(tree, "<wait>\n"), "%s", tree);
	free(all);
	free(busy);
	free(tree);
	ctl_fails(&d, 2, "all data", "report", saved, "--busy", "-f", "json", NULL);
}

/* serve is entered once and resumed a hundred times, and enters or resumes request 150 times. */
static void calls_per_call(void)
{
	char *file = ctl_ok(&d, "report", saved, "-f", "callees", NULL);
	char *screen = at_terminal("-fcallees", "serve");
	char *tree = ctl_ok(&d, "report", saved, "-f", "tree", "--min-share", "0", NULL);

	cr_assert(!strstr(file, "per call"), "as pstats prints it: %s", file);
	cr_assert(strstr(screen, "cumtime  per call of caller"), "%s", screen);
	cr_assert(strstr(screen, "  1.49  ") && strstr(screen, "program.py:7(request)"), "%s",
		  screen);
	cr_assert(strstr(tree, " request  x 1.49 per call  "), "%s", tree);
	free(file);
	free(screen);
	free(tree);
}

Test(reports, of_one_run)
{
	free(ctl_ok(&d, "run", "-o", saved, "--", traced_newest().exe, script, NULL));
	on_a_terminal_and_in_a_file();
	waits_for_work_are_left_out();
	calls_per_call();
}

/* Calls of a function in a profile; -1: it has no row. */
static json_int_t calls_of(const char *path, const char *name, const char **exact)
{
	json_t *root = json_load_file(path, 0, NULL), *f;
	json_int_t ret = -1;
	size_t i;

	cr_assert(root, "%s", path);
	json_array_foreach(json_object_get(root, "functions"), i,
			   f) if (strcmp(json_string_value(json_object_get(f, "name")), name) == 0)
		ret = json_integer_value(json_object_get(f, "ncalls"));
	*exact = json_is_true(json_object_get(root, "exact")) ? "exact" : "estimates";
	json_decref(root);
	return ret;
}

/* Intervals add up to the whole, and each name has its own. */
Test(reports, intervals)
{
	char part[3][128], all[128], sum[128], pid[16], *text;
	struct traced t;
	struct ran r;
	const char *exact;

	traced_start(&t, traced_newest().exe, "shares.py", "plain", NULL);
	traced_expect(&t, "ready");
	pyprofd_launch(&d, "--pid", pid_text(pid, t.pid), NULL);
	pyprofd_ready(&d);
	for (int i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof(name), "part%d.json", i);
		pyprofd_file(&d, name, part[i], sizeof(part[i]));
		if (i == 2)
			free(ctl_ok(&d, "stop", NULL));
		if (i == 1)
			ctl_until(&d, 0, "events", ctl_number(&d, 0, "events") + 1000);
		free(ctl_ok(&d, "snapshot", "--since", "test", "-o", part[i], NULL));
	}
	pyprofd_file(&d, "all.json", all, sizeof(all));
	pyprofd_file(&d, "sum.json", sum, sizeof(sum));
	free(ctl_ok(&d, "snapshot", "--pid", pid, "-o", all, NULL));
	free(ctl_ok(&d, "report", part[0], part[1], part[2], "-o", sum, NULL));
	cr_assert(calls_of(all, "three", &exact) > 0);
	cr_assert_eq(calls_of(all, "three", &exact), calls_of(sum, "three", &exact));
	cr_assert_str_eq(exact, "exact");
	text = ctl_ok(&d, "snapshot", "--since", "test", "--pid", pid, NULL);
	cr_assert(strstr(text, "         0 function calls") && strstr(text, "since the last"), "%s",
		  text);
	free(text);
	text = ctl_ok(&d, "snapshot", "--since", "other", NULL);
	cr_assert(!strstr(text, "since the last"), "%s", text);
	free(text);
	ctl_fails(&d, 2, "invalid name", "snapshot", "--since", "a/b", NULL);
	ctl_fails(&d, 2, "exclude", "snapshot", "--since", "a", "--since-last", NULL);
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	ran_free(&r);
	traced_stop(&t);
}
