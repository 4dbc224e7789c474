// SPDX-License-Identifier: BSD-2-Clause
/* cli/cmd_completion: every option of every command, and bash asked to complete. */
#include <errno.h>

#include "base/cleanup.h"
#include "cmd.h"
#include "harness/python.h"
#include "harness/test.h"
#include "harness/tool.h"

static char *completion(const char *shell)
{
	char *operands[] = {(char *)shell, NULL}, *text = NULL;
	struct cmd_call call = {.operands = operands, .noperands = 1};
	struct diag diag = {0};
	size_t n;
	int r;

	call.out = open_memstream(&text, &n);
	r = cmd_completion.run(&call, &diag);
	fclose(call.out);
	assert_diag_ok(r, &diag);
	return text;
}

Test(completion, has_every_command_and_option)
{
	static const char *const shells[] = {"bash", "zsh", "fish"};

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		_cleanup_free_ char *text = completion(shells[i]);

		for (const struct cmd *const *c = cmds; *c; c++) {
			cr_assert(strstr(text, (*c)->name), "%s: %s", shells[i], (*c)->name);
			for (const struct opt *o = (*c)->opts; o && o->name; o++)
				cr_assert(strstr(text, o->name), "%s: %s", shells[i], o->name);
		}
	}
	check_no_leaks();
}

Test(completion, unknown_shell)
{
	char *operands[] = {(char *)"csh", NULL};
	struct cmd_call call = {.operands = operands, .noperands = 1, .out = stdout};
	struct diag diag = {0};

	assert_err(cmd_completion.run(&call, &diag), -EINVAL);
	cr_assert(diag.exit == PYP_EXIT_USAGE);
}

/* What bash offers for a line; its last word is being typed. */
static char *ask(const char *file, const char *words)
{
	char script[1024];
	const char *argv[] = {"bash", "-c", script, NULL};

	snprintf(script, sizeof(script),
		 "set -eu; . %s; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
		 "compopt() { echo files; }; _pyprofctl; echo \"${COMPREPLY[@]}\"",
		 file, words);
	return tool_run(argv);
}

Test(completion, bash_completes)
{
	static const struct {
		const char *words, *want;
	} cases[] = {
		{"pyprofctl snap", "snapshot\n"},
		{"pyprofctl --so", "--socket\n"},
		{"pyprofctl --socket x sn", "snapshot\n"},
		{"pyprofctl snapshot --cl", "--clock\n"},
		{"pyprofctl snapshot --clock ''", "cpu wall\n"},
		{"pyprofctl snapshot -f spee", "speedscope\n"},
		{"pyprofctl snapshot -o ''", "files\n\n"},
		{"pyprofctl top -s cu", "cum cumtime\n"},
		{"pyprofctl report x", "files\n\n"},
		{"pyprofctl report --only", "--only-my-code\n"},
	};
	_cleanup_free_ char *text = completion("bash");
	char *dir = temp_dir_new(), file[256];
	FILE *out;

	snprintf(file, sizeof(file), "%s/bash", dir);
	out = fopen(file, "w");
	cr_assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *got = ask(file, cases[i].words);

		cr_assert_str_eq(got, cases[i].want);
	}
	temp_dir_remove(dir);
}
