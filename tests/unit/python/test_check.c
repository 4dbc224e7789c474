// SPDX-License-Identifier: BSD-2-Clause
/* A layout that matches a process is distinguished from other layouts. */
#include "harness/interpreters.h"
#include "harness/test.h"
#include "python/python.h"

/* Its stack is complete not only while it waits between two checks. */
static const char busy[] = "import os\n"
			   "def leaf(n): return n\n"
			   "def fib(n): return leaf(n) if n < 2 else fib(n - 1) + fib(n - 2)\n"
			   "print('ready')\n"
			   "while True: fib(12)\n";

static void assert_wrong(struct python *py, const struct memory *mem, pid_t pid)
{
	struct diag diag = {0};

	cr_expect(python_check(py, mem, pid, &diag) < 0, "%s: accepted", py->version);
	cr_expect_eq(diag.exit, PYP_EXIT_UNTRACEABLE);
	cr_expect(strstr(diag.msg, "has an unknown memory layout"), "%s", diag.msg);
}

static void check_process(const struct interpreter *it)
{
	struct python *py = NULL;
	struct target *t = NULL;
	struct diag diag = {0};
	struct memory mem;
	struct layout right;
	char line[16];
	int out;
	pid_t pid = interpreter_start(it, busy, &out);

	interpreter_line(out, line, sizeof(line));
	mem = memory_live(pid);
	assert_diag_ok(target_open(pid, &t, &diag), &diag);
	assert_diag_ok(python_discover(t, &py, &diag), &diag);
	for (int i = 0; i < 10; i++)
		assert_diag_ok(python_check(py, &mem, pid, &diag), &diag);
	right = py->layout;
	py->layout.bpf.frame_code = py->layout.bpf.frame_previous;
	assert_wrong(py, &mem, pid);
	py->layout = right;
	py->layout.bpf.frame_previous = py->layout.bpf.frame_code;
	assert_wrong(py, &mem, pid);
	python_free(py);
	target_free(t);
	interpreter_end(pid, out);
}

Test(check, real_processes)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		if (v[i].major == 3)
			check_process(&v[i]);
	check_no_leaks();
}
