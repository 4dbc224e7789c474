// SPDX-License-Identifier: BSD-2-Clause
/* cli/cmd_completion: all options of all commands; bash, fish and zsh complete them. */
#include <errno.h>

#include "base/cleanup.h"
#include "cmd.h"
#include "harness/temp_dir.h"
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
			for (const struct opt *o = (*c)->target_opts; o && o->name; o++)
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

static char *save(const char *shell, const char *name)
{
	_cleanup_free_ char *text = completion(shell);
	char *dir = temp_dir_new(), file[256];
	FILE *out;

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	out = fopen(file, "w");
	cr_assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
	return dir;
}

/* Returns bash's completions of a line, whose last word is incomplete. */
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
		{"pyprofctl snapshot -s cum", "cumtime cumulative\n"},
		{"pyprofctl snapshot -o ''", "files\n\n"},
		{"pyprofctl top -s cu", "cum cumtime cumulative\n"},
		{"pyprofctl report x", "files\n\n"},
		{"pyprofctl report --only", "--only-my-code\n"},
		{"pyprofctl record --pid 1 --pi", "--pid\n"},
		{"pyprofctl ps --j", "--json\n"},
		{"pyprofctl dump --cont", "--container\n"},
	};
	char *dir = save("bash", "bash"), file[256];

	snprintf(file, sizeof(file), "%s/bash", dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *got = ask(file, cases[i].words);

		cr_assert_str_eq(got, cases[i].want);
	}
	temp_dir_remove(dir);
}

/* fish prints each completion followed by a tab and its help. */
Test(completion, fish_completes)
{
	static const struct {
		const char *line, *want;
	} cases[] = {
		{"pyprofctl snap", "snapshot\n"},
		{"pyprofctl --so", "--socket\n"},
		{"pyprofctl --socket x sn", "snapshot\n"},
		{"pyprofctl snapshot --cl", "--clock\n"},
		{"pyprofctl snapshot --clock ", "cpu\nwall\n"},
		{"pyprofctl snapshot -f spee", "speedscope\n"},
		{"pyprofctl snapshot -s cum", "cumtime\ncumulative\n"},
		{"pyprofctl top -s cu", "cum\ncumtime\ncumulative\n"},
		{"pyprofctl report --only", "--only-my-code\n"},
		{"pyprofctl timeline -f ", "chrome\ncsv\n"},
	};
	char *dir, script[512];

	tool_need("fish");
	dir = save("fish", "fish");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *argv[] = {"env",	     "-u", "HOME", "fish",
				      "--no-config", "-c", script, NULL};
		_cleanup_free_ char *got = NULL;

		snprintf(script, sizeof(script),
			 "source %s/fish; complete -C '%s' | string replace -r '\\t.*' ''", dir,
			 cases[i].line);
		got = tool_run(argv);
		cr_assert_str_eq(got, cases[i].want, "%s: %s", cases[i].line, got);
	}
	temp_dir_remove(dir);
}

/*
 * An interactive zsh in a terminal of its own, in which ^T completes the line so far and prints it.
 * The arguments are the directory of the completion, and lines.
 */
static const char zsh_script[] =
	"zmodload zsh/zpty\n"
	"zpty z zsh -f -i\n"
	"zpty -w z \"PROMPT= TERM=vt100 fpath=($1 \\$fpath); autoload -U compinit; compinit -u -D\n"
	"comp() { zle complete-word; print -r -- \\\"<<\\$BUFFER>>\\\"; BUFFER=; zle -R }\n"
	"zle -N comp; bindkey ^T comp; print rea''dy\"\n"
	"zpty -r z line '*ready*'\n"
	"shift\n"
	"for words; do\n"
	"    zpty -w -n z \"$words\"$'\\x14'\n"
	"    zpty -r z line '*<<*>>*'\n"
	"    print -r -- ${${line##*<<}%%>>*}\n"
	"done\n"
	"zpty -d z\n";

Test(completion, zsh_completes)
{
	char *dir, *got;

	tool_need("zsh");
	dir = save("zsh", "_pyprofctl");
	got = tool_run((const char *[]){"zsh", "-f", "-c", zsh_script, "zsh", dir, "pyprofctl snap",
					"pyprofctl --so", "pyprofctl --socket x sn",
					"pyprofctl snapshot --cl", "pyprofctl snapshot --clock c",
					"pyprofctl snapshot -f spee", "pyprofctl report --only",
					"pyprofctl report x --only", "pyprofctl timeline -f ch",
					"pyprofctl --socket x top -s na", NULL});
	cr_assert_str_eq(got,
			 "pyprofctl snapshot \npyprofctl --socket \n"
			 "pyprofctl --socket x snapshot \npyprofctl snapshot --clock \n"
			 "pyprofctl snapshot --clock cpu \n"
			 "pyprofctl snapshot -f speedscope \n"
			 "pyprofctl report --only-my-code \n"
			 "pyprofctl report x --only-my-code \n"
			 "pyprofctl timeline -f chrome \n"
			 "pyprofctl --socket x top -s name \n",
			 "%s", got);
	free(got);
	temp_dir_remove(dir);
}
