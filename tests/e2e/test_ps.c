// SPDX-License-Identifier: BSD-2-Clause
/* pyprofctl ps, and finding processes by name and port: real interpreters. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/interpreters.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

#define NOBODY 65534

static struct pyprofd d;
static struct interpreter it;

/* A Python process whose command line has `word`, a word of its own that others do not have. */
struct program {
	pid_t pid;
	int out;
	char text[16], word[32];
};

static void setup(void)
{
	it = traced_newest();
	pyprofd_init(&d);
}

static void teardown(void)
{
	pyprofd_end(&d);
}

TestSuite(ps, .init = setup, .fini = teardown);

/* body prints a line when it is ready. */
static struct program start(const char *word, const char *body, char line[64])
{
	struct program p;
	char script[1024];

	snprintf(p.word, sizeof(p.word), "%s%d", word, (int)getpid());
	snprintf(script, sizeof(script), "%s # %s", body, p.word);
	p.pid = interpreter_start(&it, script, &p.out);
	interpreter_line(p.out, line, 64);
	pid_text(p.text, p.pid);
	return p;
}

static struct program start_waiting(const char *word)
{
	char line[64];

	return start(word, "import signal; print('ready', flush=True); signal.pause()", line);
}

static void end(struct program *p)
{
	interpreter_end(p->pid, p->out);
}

/* A process of `ps --json`; NULL: it is not listed. */
static json_t *listed(pid_t pid)
{
	char *text = ctl_ok(&d, "ps", "--json", NULL);
	json_t *root = json_loads(text, 0, NULL), *process, *ret = NULL;
	size_t i;

	cr_assert(root, "%s", text);
	json_array_foreach(json_object_get(root, "processes"), i, process)
	{
		if (json_integer_value(json_object_get(process, "pid")) == pid)
			ret = json_incref(process);
	}
	json_decref(root);
	free(text);
	return ret;
}

Test(ps, lists)
{
	struct program p = start_waiting("shop");
	json_t *process = listed(p.pid);
	char version[16], *text;

	cr_assert(process);
	snprintf(version, sizeof(version), "%d.%d.", it.major, it.minor);
	text = json_dumps(process, 0);
	cr_assert(json_is_true(json_object_get(process, "traceable")), "%s", text);
	cr_assert(strncmp(json_string_value(json_object_get(process, "version")), version,
			  strlen(version)) == 0,
		  "%s", text);
	cr_assert_eq(json_integer_value(json_object_get(process, "ppid")), getpid());
	cr_assert_eq(json_integer_value(json_object_get(process, "threads")), 1);
	cr_assert(json_is_number(json_object_get(process, "cpu_percent")), "%s", text);
	cr_assert(strstr(json_string_value(json_object_get(process, "command")), p.word));
	json_decref(process);
	free(text);
	text = ctl_ok(&d, "ps", NULL);
	cr_assert(strstr(text, "UNIT/CONTAINER") && strstr(text, p.word), "%s", text);
	free(text);
	end(&p);
	cr_assert_null(listed(p.pid));
}

/* Without privileges: what cannot be read is listed by its name, and said. */
Test(ps, as_another_user)
{
	struct program p = start_waiting("shop");
	json_t *process;

	d.uid = NOBODY;
	process = listed(p.pid);
	cr_assert(process);
	cr_assert(json_is_null(json_object_get(process, "traceable")));
	cr_assert(strstr(json_string_value(json_object_get(process, "reason")), "no permission"));
	json_decref(process);
	end(&p);
}

/* A process whose program has this name. Killed by the caller. */
static pid_t start_named(const char *path)
{
	char none;
	pid_t child;
	int go[2];

	free(tool_run((const char *[]){"cp", "/bin/sleep", path, NULL}));
	cr_assert(pipe2(go, O_CLOEXEC) == 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, "3600", NULL);
		_exit(127);
	}
	close(go[1]);
	cr_assert_eq(read(go[0], &none, 1), 0, "it has executed the program");
	close(go[0]);
	return child;
}

/* A program of this file name is listed and refused as this implementation. */
static void check_named(const char *file, const char *name)
{
	char path[512], runs[64], is[64], text[16], *dir = temp_dir_new();
	json_t *process;
	pid_t child;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	snprintf(runs, sizeof(runs), "runs %s, not CPython", name);
	snprintf(is, sizeof(is), "is %s, not CPython", name);
	child = start_named(path);
	process = listed(child);
	cr_assert(process && json_is_false(json_object_get(process, "traceable")));
	cr_assert_str_eq(json_string_value(json_object_get(process, "implementation")), name);
	json_decref(process);
	pid_text(text, child);
	ctl_fails(&d, 5, runs, "dump", text, NULL);
	ctl_fails(&d, 5, runs, "record", "--pid", text, "-d", "1", NULL);
	ctl_fails(&d, 5, runs, "doctor", text, NULL);
	ctl_fails(&d, 5, is, "doctor", path, NULL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	temp_dir_remove(dir);
}

/* The name of the file is enough to name what cannot be traced. */
Test(ps, pypy)
{
	check_named("pypy3.10", "PyPy");
	check_named("pypy3", "PyPy");
}

Test(ps, graalpy)
{
	check_named("graalpy", "GraalPy");
}

/* Whatever keeps root from process 1, or its program, "run as root" is no advice. */
Test(ps, process_1)
{
	static const char *const commands[] = {"dump", "doctor"};

	if (geteuid() != 0)
		cr_skip_test("needs root");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct ran r = ctl(&d, commands[i], "1", NULL);

		cr_assert(r.status == 4 || r.status == 5, "%d: %s", r.status, r.err);
		cr_assert(!strstr(r.err, "run as root") && strstr(r.err, "process 1"), "%s", r.err);
		ran_free(&r);
	}
}

static void check_dumps(const struct ran *r, const struct program *p, bool dumped)
{
	char line[64];

	snprintf(line, sizeof(line), "process %d: ", (int)p->pid);
	cr_assert_eq(strstr(r->out, line) != NULL, dumped, "%s", r->out);
}

Test(ps, dump_by_name)
{
	struct program p = start_waiting("shop"), q = start_waiting("bank");
	struct ran r = ctl(&d, "dump", p.word, NULL);

	cr_assert(r.status == 0 && !*r.err, "%s", r.err);
	check_dumps(&r, &p, true);
	check_dumps(&r, &q, false);
	ran_free(&r);
	/* a bad one does not stop the others */
	r = ctl(&d, "dump", "4194303", p.word, "no-such-name", q.text, NULL);
	cr_assert_eq(r.status, 3);
	cr_assert(strstr(r.err, "4194303") && strstr(r.err, "the name 'no-such-name'"), "%s",
		  r.err);
	check_dumps(&r, &p, true);
	check_dumps(&r, &q, true);
	ran_free(&r);
	end(&p);
	end(&q);
}

Test(ps, ambiguous)
{
	struct program p = start_waiting("shop"), q = start_waiting("shop");
	struct ran r = ctl(&d, "dump", p.word, NULL);

	cr_assert(r.status == 2 && !*r.out, "%d %s", r.status, r.out);
	cr_assert(strstr(r.err, "2 Python processes match"), "%s", r.err);
	cr_assert(strstr(r.err, p.text) && strstr(r.err, q.text), "%s", r.err);
	ran_free(&r);
	r = ctl(&d, "dump", p.word, "--all", NULL);
	cr_assert(r.status == 0 && !*r.err, "%s", r.err);
	check_dumps(&r, &p, true);
	check_dumps(&r, &q, true);
	ran_free(&r);
	end(&p);
	end(&q);
}

/* A server with a worker that has inherited its socket: the server is meant. */
Test(ps, port_of_a_server_that_forks)
{
	static const char body[] = "import os, time, socket; s = socket.socket(); "
				   "s.bind(('127.0.0.1', 0)); s.listen(); child = os.fork(); "
				   "child and print(s.getsockname()[1], child, flush=True); "
				   "time.sleep(3600)";
	char line[64], port[16], *rest;
	struct program p = start("server", body, line), worker = {0};
	struct ran r;

	snprintf(port, sizeof(port), "%ld", strtol(line, &rest, 10));
	worker.pid = (pid_t)strtol(rest, NULL, 10);
	cr_assert(worker.pid > 0, "%s", line);
	r = ctl(&d, "dump", "--port", port, NULL);
	cr_assert_eq(r.status, 0, "%s", r.err);
	cr_assert(strstr(r.err, "1 of its children") && strstr(r.err, "--follow-children"), "%s",
		  r.err);
	check_dumps(&r, &p, true);
	check_dumps(&r, &worker, false);
	ran_free(&r);
	r = ctl(&d, "dump", "--port", port, "--all", NULL);
	cr_assert(r.status == 0 && !*r.err, "%s", r.err);
	check_dumps(&r, &worker, true);
	ran_free(&r);
	kill(worker.pid, SIGKILL);
	end(&p);
	r = ctl(&d, "dump", "--port", port, "--unit", "no-such-unit", NULL);
	cr_assert_eq(r.status, 3);
	cr_assert(strstr(r.err, "--port") && strstr(r.err, "--unit no-such-unit"), "%s", r.err);
	ran_free(&r);
}

Test(ps, attach_and_record_by_name)
{
	struct program p = start_waiting("shop"), q = start_waiting("bank");
	char line[64], *text;
	json_t *target;
	struct ran r;

	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	text = ctl_ok(&d, "attach", "--mode", "sample", p.word, NULL);
	snprintf(line, sizeof(line), "process %s: attached\n", p.text);
	cr_assert_str_eq(text, line);
	free(text);
	target = ctl_target_of(&d, p.pid);
	cr_assert(target);
	json_decref(target);
	text = ctl_ok(&d, "record", "--mode", "sample", "-p", q.word, "-d", "100ms", "-f", "json",
		      NULL);
	snprintf(line, sizeof(line), "\"pid\":%s", q.text);
	cr_assert(strstr(text, line), "%s", text);
	free(text);
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	ran_free(&r);
	end(&p);
	end(&q);
}
