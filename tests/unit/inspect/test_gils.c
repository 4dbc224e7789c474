// SPDX-License-Identifier: BSD-2-Clause
/*
 * The GIL is found by the switch interval that the program has set; in 3.6, where it is not in one
 * structure, by its symbols. Impossible answers are refused.
 */
#include <errno.h>

#include "elf/image.h"
#include "harness/interpreters.h"
#include "harness/test.h"
#include "inspect/answer.h"
#include "inspect/inspect.h"
#include "inspect/gils.h"
#include "plan/gil.h"

#define INTERVAL 1234 /* microseconds */

static const char program[] = "import signal, sys\n"
			      "sys.setswitchinterval(0.001234)\n"
			      "print('ready')\n"
			      "signal.pause()\n";

static void check_process(const struct interpreter *it)
{
	struct pyp_gil_range v[PYP_GIL_RANGES];
	struct python *py = NULL;
	struct target *t = NULL;
	struct diag diag = {0};
	struct memory mem;
	uint64_t interval = 0;
	char line[16];
	int out;
	pid_t pid = interpreter_start(it, program, &out);
	size_t n;

	interpreter_line(out, line, sizeof(line));
	mem = memory_live(pid);
	assert_diag_ok(target_open(pid, &t, &diag), &diag);
	assert_diag_ok(python_discover(t, &py, &diag), &diag);
	gil_find(py->image, &py->layout, &py->gil);
	n = gils_read(py, &mem, v);
	if (it->minor == 6) {
		cr_expect_eq(n, 4, "3.6: %zu parts", n);
	} else {
		cr_expect_eq(n, 1, "%s: %zu GILs", it->exe, n);
		(void)memory_read_u64(&mem, v[0].start, &interval);
		cr_expect_eq(interval, INTERVAL, "%s: %llu at %llx", it->exe,
			     (unsigned long long)interval, (unsigned long long)v[0].start);
	}
	python_free(py);
	target_free(t);
	interpreter_end(pid, out);
}

Test(gils, real_processes)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		if (v[i].major == 3)
			check_process(&v[i]);
	check_no_leaks();
}

/*
 * Two interpreters that share a GIL, and one with its own; the list of interpreters is hostile: it
 * is circular.
 */
Test(gils, interpreters)
{
	uint64_t mem[512] = {0};
	const uint64_t base = 0x10000, a = base + 256, b = base + 512, gil = base + 1024,
		       own = base + 2048;
	struct memory m = memory_buffer(mem, sizeof(mem), base);
	struct pyp_gil_range v[PYP_GIL_RANGES];
	struct python py = {.runtime = base, .gil.interp = 16};

	py.layout.runtime_interpreters_head = 8;
	py.layout.interp_next = 8;
	mem[1] = a;
	mem[(a - base) / 8 + 1] = b;
	mem[(b - base) / 8 + 1] = a;
	mem[(a - base) / 8 + 2] = gil;
	mem[(b - base) / 8 + 2] = own;
	mem[(gil - base) / 8] = 5000;
	mem[(own - base) / 8] = 5000;
	cr_assert_eq(gils_read(&py, &m, v), 2);
	cr_assert(v[0].start == gil && v[1].start == own);
	cr_assert(v[0].gil == 0 && v[1].gil == 1);
	mem[(b - base) / 8 + 2] = gil;
	cr_assert_eq(gils_read(&py, &m, v), 1);
	/* A structure without a switch interval is not a GIL. */
	mem[(gil - base) / 8] = 0;
	cr_assert_eq(gils_read(&py, &m, v), 0);
}

Test(gils, impossible_answers)
{
	struct pyp_gil_range v[PYP_GIL_RANGES + 1] = {{0x1000, 208, 0}, {0x2000, 208, 1}}, out[16];

	cr_assert_eq(answer_decode_gils(v, 0, out), 0);
	cr_assert_eq(out[0].size, 0);
	cr_assert_eq(answer_decode_gils(v, 2 * sizeof(*v), out), 2);
	cr_assert(out[1].start == 0x2000 && !out[2].size);
	assert_err(answer_decode_gils(v, sizeof(v), out), -EPROTO);
	assert_err(answer_decode_gils(v, sizeof(*v) + 1, out), -EPROTO);
	v[1].gil = PYP_GIL_RANGES;
	assert_err(answer_decode_gils(v, 2 * sizeof(*v), out), -EPROTO);
	v[1] = (struct pyp_gil_range){0x2000, 1 << 20, 0};
	assert_err(answer_decode_gils(v, 2 * sizeof(*v), out), -EPROTO);
	v[1] = (struct pyp_gil_range){UINT64_MAX - 8, 8, 0};
	assert_err(answer_decode_gils(v, 2 * sizeof(*v), out), -EPROTO);
}
