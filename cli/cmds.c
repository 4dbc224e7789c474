// SPDX-License-Identifier: BSD-2-Clause
/* The table of commands, and command line parsing: see cmd.h. */
#include "cmd.h"

#include <errno.h>
#include <string.h>

#include "base/sockpath.h"
#include "base/target_opts.h"

const struct cmd *const cmds[] = {
	&cmd_ps,	 &cmd_attach,	&cmd_detach,  &cmd_start,      &cmd_stop,
	&cmd_clear,	 &cmd_status,	&cmd_ping,    &cmd_shutdown,   &cmd_snapshot,
	&cmd_callers,	 &cmd_callees,	&cmd_threads, &cmd_coroutines, &cmd_tree,
	&cmd_lines,	 &cmd_counters, &cmd_memory,  &cmd_waits,      &cmd_gil,
	&cmd_report,	 &cmd_diff,	&cmd_record,  &cmd_run,	       &cmd_timeline,
	&cmd_slow,	 &cmd_top,	&cmd_ui,      &cmd_watch,      &cmd_doctor,
	&cmd_dump,	 &cmd_objects,	&cmd_history, &cmd_push,       &cmd_fleet,
	&cmd_completion, NULL,
};

#define NCMDS (sizeof(cmds) / sizeof(cmds[0]))

#define FIELD(f) .offset = offsetof(struct cmdline, f)

const struct opt cmd_global_opts[] = {
	{"socket", 0, OPT_STRING, FIELD(socket), "PATH",
	 "the daemon's socket; default: $" SOCKPATH_ENV ",\notherwise " SOCKPATH_DEFAULT},
	{"help", 'h', OPT_FLAG, FIELD(help), NULL, "show this help, or a command's help"},
	{"version", 0, OPT_FLAG, FIELD(version), NULL, "show the version"},
	{NULL},
};

static const struct opt no_opts[] = {{NULL}};

static const struct cmd *find(const char *name)
{
	for (const struct cmd *const *c = cmds; *c; c++)
		if (strcmp((*c)->name, name) == 0)
			return *c;
	return NULL;
}

/* The only command that begins with word, or the one most like it; NULL: none */
static const char *closest(const char *word)
{
	const char *names[NCMDS] = {NULL}, *found = NULL;
	size_t n = strlen(word), matches = 0;

	for (size_t i = 0; cmds[i]; i++) {
		names[i] = cmds[i]->name;
		if (n > 1 && strncmp(names[i], word, n) == 0) {
			found = names[i];
			matches++;
		}
	}
	return matches == 1 ? found : opts_closest(word, names);
}

static int unknown_command(const char *name, struct diag *diag)
{
	const char *close = closest(name);
	char hint[96];

	if (close)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", close);
	else
		snprintf(hint, sizeof(hint), "see --help");
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "unknown command '%s'", name);
}

static int check_operands(const struct cmdline *cl, struct diag *diag)
{
	const struct cmd *cmd = cl->cmd;
	char hint[128];

	snprintf(hint, sizeof(hint), "usage: pyprofctl %s%s%s", cmd->name, cmd->operands ? " " : "",
		 cmd->operands ? cmd->operands : "");
	if (cl->noperands < cmd->min_operands)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "%s: an argument is missing",
				cmd->name);
	if (cl->noperands > cmd->max_operands)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "%s: unexpected argument '%s'",
				cmd->name, cl->operands[cmd->max_operands]);
	return 0;
}

static int parse_command(int argc, char **argv, struct cmdline *cl, struct diag *diag)
{
	const struct cmd *cmd = cl->cmd;
	struct target_opts_given *target = (void *)(cl->opts + cmd->target_at);
	const struct opt_group groups[] = {
		{cmd->opts ? cmd->opts : no_opts, cl->opts},
		{cmd_global_opts, cl},
		{cmd->target_opts, &target->opts, &target->given}, /* NULL ends the list */
		{NULL},
	};
	int first, r;

	r = opts_parse(groups, argc, argv, OPTS_PERMUTE, &first, NULL, diag);
	if (r < 0)
		return r;
	cl->operands = argv + first;
	cl->noperands = argc - first;
	return cl->help || cl->version ? 0 : check_operands(cl, diag);
}

int cmdline_parse(int argc, char **argv, struct cmdline *ret, struct diag *diag)
{
	struct cmdline cl = {0};
	const struct opt_group groups[] = {{cmd_global_opts, &cl}, {NULL}};
	int first, r;

	r = opts_parse(groups, argc, argv, OPTS_STOP, &first, NULL, diag);
	if (r < 0)
		return r;
	if (first < argc) {
		cl.cmd = find(argv[first]);
		if (!cl.cmd)
			return unknown_command(argv[first], diag);
		r = parse_command(argc - first, argv + first, &cl, diag);
		if (r < 0)
			return r;
	} else if (!cl.help && !cl.version) {
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "see --help",
				"a command is required");
	}
	*ret = cl;
	return 0;
}

static void program_help(FILE *out)
{
	fputs("Usage: pyprofctl [--socket PATH] COMMAND [OPTION]... [ARGUMENT]...\n"
	      "\n"
	      "Control pyprofd, the out-of-process profiler for Python.\n"
	      "\n"
	      "Commands:\n",
	      out);
	for (const struct cmd *const *c = cmds; *c; c++) {
		char left[64];

		snprintf(left, sizeof(left), "%s%s%s", (*c)->name, (*c)->operands ? " " : "",
			 (*c)->operands ? (*c)->operands : "");
		fprintf(out, "  %-24s  %s\n", left, (*c)->summary);
	}
	fputs("\nOptions:\n", out);
	opts_print(cmd_global_opts, false, out);
	fputs("\nExit status: 0 success, 1 failure, 2 usage, 3 no such process, 4 no permission,\n"
	      "5 not a traceable Python, 6 no daemon, 7 already being traced.\n",
	      out);
}

void cmd_help(const struct cmd *cmd, FILE *out)
{
	if (!cmd) {
		program_help(out);
		return;
	}
	fprintf(out, "Usage: pyprofctl %s%s%s%s\n\n%s.\n\nOptions:\n", cmd->name,
		cmd->opts ? " [OPTION]..." : "", cmd->operands ? " " : "",
		cmd->operands ? cmd->operands : "", cmd->summary);
	if (cmd->opts)
		opts_print(cmd->opts, false, out);
	opts_print(cmd_global_opts, false, out);
	if (!cmd->target_opts)
		return;
	fputs("\nHow the target is observed (default: as pyprofd was started):\n", out);
	opts_print(cmd->target_opts, false, out);
}
