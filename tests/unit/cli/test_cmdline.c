// SPDX-License-Identifier: BSD-2-Clause
/* cli/cmds: commands with their options and operands; help from the same tables. */
#include "cmd.h"

#include <errno.h>

#include "base/cleanup.h"
#include "harness/test.h"

static struct cmdline cl;
static struct diag diag;
static char *argv[32];

static int parse(const char *const *words)
{
	int argc = 1;

	argv[0] = (char *)"pyprofctl";
	for (; *words; words++)
		argv[argc++] = (char *)*words;
	argv[argc] = NULL;
	memset(&cl, 0, sizeof(cl));
	diag_clear(&diag);
	return cmdline_parse(argc, argv, &cl, &diag);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

Test(cmdline, command_and_operands)
{
	assert_diag_ok(PARSE("attach", "1", "2"), &diag);
	cr_assert(cl.cmd == &cmd_attach && cl.noperands == 2 && !cl.socket);
	cr_assert_str_eq(cl.operands[0], "1");
	cr_assert_str_eq(cl.operands[1], "2");
	cr_assert_null(cl.operands[2]);
}

Test(cmdline, socket_before_or_behind)
{
	assert_diag_ok(PARSE("--socket", "a", "ping"), &diag);
	cr_assert_str_eq(cl.socket, "a");
	assert_diag_ok(PARSE("ping", "--socket=b"), &diag);
	cr_assert_str_eq(cl.socket, "b");
	assert_diag_ok(PARSE("--socket", "a", "ping", "--socket", "b"), &diag);
	cr_assert_str_eq(cl.socket, "b");
	assert_diag_ok(PARSE("attach", "1", "--socket", "b", "2"), &diag);
	cr_assert(cl.noperands == 2);
}

Test(cmdline, options_are_the_commands_own)
{
	assert_diag_ok(PARSE("snapshot", "-f", "json", "-l", "5", "a.*", "-s", "cum", "--", "-x"),
		       &diag);
	cr_assert(cl.noperands == 2);
	cr_assert_str_eq(cl.operands[1], "-x");
	assert_err(PARSE("ping", "-f", "json"), -EINVAL);
	cr_assert_str_eq(diag.msg, "unknown option '-f'");
	assert_err(PARSE("-f", "json", "snapshot"), -EINVAL);
}

Test(cmdline, errors)
{
	static const struct {
		const char *words[4];
		const char *msg, *hint;
	} cases[] = {
		{{NULL}, "a command is required", "see --help"},
		{{"sanpshot"}, "unknown command 'sanpshot'", "did you mean 'snapshot'?"},
		{{"frobnicate"}, "unknown command 'frobnicate'", "see --help"},
		{{"snap"}, "unknown command 'snap'", "did you mean 'snapshot'?"},
		{{"cor"}, "unknown command 'cor'", "did you mean 'coroutines'?"},
		{{"st"}, "unknown command 'st'", "see --help"},
		{{"s"}, "unknown command 's'", "see --help"},
		{{"detach"}, "detach: an argument is missing", "usage: pyprofctl detach PID"},
		{{"ping", "x"}, "ping: unexpected argument 'x'", "usage: pyprofctl ping"},
		{{"detach", "1", "2"},
		 "detach: unexpected argument '2'",
		 "usage: pyprofctl detach PID"},
		{{"start", "--pid", "0"}, "--pid: invalid value '0'", "expected a process id"},
		{{"snapshot", "-l", "0"},
		 "--limit: '0' is out of range",
		 "expected 1 to 2147483647"},
		{{"snapshot", "--clock", "sun"},
		 "--clock: invalid value 'sun'",
		 "expected one of: cpu wall"},
		{{"--socket"}, "option '--socket' needs a value", "see --help"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert(parse(cases[i].words) < 0);
		cr_assert(diag.exit == PYP_EXIT_USAGE);
		cr_assert_str_eq(diag.msg, cases[i].msg);
		cr_assert_str_eq(diag.hint, cases[i].hint);
	}
}

Test(cmdline, help_and_version_need_nothing_else)
{
	assert_diag_ok(PARSE("--help"), &diag);
	cr_assert(cl.help && !cl.cmd);
	assert_diag_ok(PARSE("attach", "--help"), &diag);
	cr_assert(cl.help && cl.cmd == &cmd_attach);
	assert_diag_ok(PARSE("-h", "attach"), &diag);
	cr_assert(cl.help && cl.cmd == &cmd_attach);
	assert_diag_ok(PARSE("--version"), &diag);
	cr_assert(cl.version);
}

Test(cmdline, every_command_is_sound)
{
	for (const struct cmd *const *c = cmds; *c; c++) {
		cr_assert((*c)->name && (*c)->summary && (*c)->run);
		cr_assert((*c)->opts_size <= CMD_OPTS_MAX);
		cr_assert(!(*c)->opts == !(*c)->opts_size);
		cr_assert((*c)->min_operands <= (*c)->max_operands);
		cr_assert(!(*c)->operands == !(*c)->max_operands);
	}
}

static void assert_narrow(const struct cmd *cmd)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	cmd_help(cmd, f);
	fclose(f);
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		cr_assert(strcspn(line, "\n") <= 80, "%s", line);
}

Test(cmdline, help_is_narrow)
{
	assert_narrow(NULL);
	for (const struct cmd *const *c = cmds; *c; c++)
		assert_narrow(*c);
}
