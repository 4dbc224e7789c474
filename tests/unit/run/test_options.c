// SPDX-License-Identifier: BSD-2-Clause
/* run/options: pyprofd's command line. */
#include "run/options.h"

#include <errno.h>

#include "base/sockpath.h"
#include "harness/test.h"

static struct options o;
static struct diag diag;
static char *argv[32];

static int parse(const char *const *words)
{
	int argc = 1;

	argv[0] = (char *)"pyprofd";
	for (; *words; words++)
		argv[argc++] = (char *)*words;
	argv[argc] = NULL;
	diag_clear(&diag);
	return options_parse(argc, argv, &o, &diag);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

Test(options, defaults)
{
	unsetenv(SOCKPATH_ENV);
	assert_diag_ok(PARSE(NULL), &diag);
	cr_assert_str_eq(o.socket, SOCKPATH_DEFAULT);
	cr_assert_str_eq(o.format->name, "text");
	cr_assert(o.clock == SNAPSHOT_CPU && o.duration_ns == 0 && !o.output && !o.cmd);
	cr_assert(o.target.ring_bytes == 16 << 20);
}

Test(options, all_of_them)
{
	assert_diag_ok(PARSE("--pid", "1", "--pid=2", "--socket", "s", "--no-start", "--clock",
			     "wall", "-d", "1.5", "-o", "x.json", "--ring-size", "65537", "-v",
			     "--", "python3", "-c", "pass"),
		       &diag);
	cr_assert(o.pids.n == 2 && o.no_start && o.verbose && o.clock == SNAPSHOT_WALL);
	cr_assert(o.duration_ns == 1500000000 && o.target.ring_bytes == 131072);
	cr_assert_str_eq(o.format->name, "json");
	cr_assert_str_eq(o.cmd[0], "python3");
	cr_assert_str_eq(o.cmd[2], "pass");
	cr_assert_null(o.cmd[3]);
}

Test(options, mode)
{
	assert_diag_ok(PARSE(NULL), &diag);
	cr_assert(o.target.mode.mode == MODE_TRACE);
	assert_diag_ok(PARSE("--mode", "count"), &diag);
	cr_assert(o.target.mode.mode == MODE_COUNT);
	assert_diag_ok(PARSE("--mode=sample"), &diag);
	cr_assert(o.target.mode.mode == MODE_SAMPLE && target_opts_rate(&o.target) == 99);
	assert_diag_ok(PARSE("--mode=count", "--rate", "199"), &diag);
	cr_assert(o.target.mode.mode == MODE_COUNT && o.target.mode.rate == 199);
	assert_diag_ok(PARSE("--mode=sample", "--rate", "999"), &diag);
	cr_assert(o.target.mode.rate == 999);
	assert_err(PARSE("--mode=guess"), -EINVAL);
	assert_err(PARSE("--mode=sample", "--rate=0"), -ERANGE);
	assert_err(PARSE("--mode=sample", "--rate=10000"), -ERANGE);
	assert_diag_ok(PARSE("--rate=99"), &diag);
	cr_assert(o.target.mode.mode == MODE_TRACE && o.target.mode.rate == 99);
	assert_diag_ok(PARSE("--mode=sample", "--clock=wall"), &diag);
	cr_assert(o.target.mode.mode == MODE_SAMPLE && o.clock == SNAPSHOT_WALL);
}

Test(options, format)
{
	assert_err(PARSE("-o", "x.svg"), -EINVAL);
	cr_assert(diag.exit == PYP_EXIT_USAGE && strstr(diag.msg, "'.svg'"));
	cr_assert(strstr(diag.hint, ".trace.json"), "%s", diag.hint);
	assert_diag_ok(PARSE("-o", "x.svg", "-f", "text"), &diag);
	assert_diag_ok(PARSE("-o", "profile"), &diag);
	cr_assert_str_eq(o.format->name, "text");
	assert_diag_ok(PARSE("-o", "x.trace.json"), &diag);
	cr_assert_str_eq(o.format->name, "chrome");
	assert_diag_ok(PARSE("-o", "x.json", "-f", "text"), &diag);
	cr_assert_str_eq(o.format->name, "text");
	assert_err(PARSE("-f", "nope"), -EINVAL);
	cr_assert(diag.exit == PYP_EXIT_USAGE && strstr(diag.hint, "json"));
}

Test(options, errors)
{
	static const char *const cases[][4] = {
		{"x"},
		{"--"},
		{"--pid", "x"},
		{"--pid", "0"},
		{"-d", "0"},
		{"-d", "x"},
		{"--ring-size", "1"},
		{"--ring-size", "2G"},
		{"--ring-size", "16MB"},
		{"--clock", "both"},
		{"-o"},
		{"--pid", "1", "x"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert(parse(cases[i]) < 0, "%s", cases[i][0]);
		cr_assert(diag.exit == PYP_EXIT_USAGE && diag.hint[0]);
	}
}

/* The command's own options are nobody else's. */
Test(options, command)
{
	assert_diag_ok(PARSE("--", "-v", "--help"), &diag);
	cr_assert(!o.verbose && !o.help);
	cr_assert_str_eq(o.cmd[0], "-v");
	assert_diag_ok(PARSE("--help", "x"), &diag);
	cr_assert(o.help);
}
