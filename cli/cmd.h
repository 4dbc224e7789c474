/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pyprofctl's commands: one `const struct cmd` each, listed in cmds.c. A command has an options
 * table for a struct of its own, a number of operands, and a function.
 */
#ifndef PYPROFCTL_CMD_H
#define PYPROFCTL_CMD_H

#include <limits.h>
#include <stddef.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/opts.h"

#define CMD_OPTS_MAX 2048
#define CMD_ANY	     INT_MAX

/* Arguments of a command's function */
struct cmd_call {
	const char *socket; /* from option, environment or default */
	const void *opts;   /* the command's options struct */
	char **operands;    /* ends with NULL */
	int noperands;
	FILE *out;
};

struct cmd {
	const char *name;
	const char *operands; /* for the help text, or NULL */
	const char *summary;
	const struct opt *opts; /* NULL: none */
	size_t opts_size;	/* size of the options struct, at most CMD_OPTS_MAX; zeroed
				 * before parsing */
	/* For commands that attach: target_opt_table, and the offset of struct
	 * target_opts_given. */
	const struct opt *target_opts;
	size_t target_at;
	int min_operands, max_operands;
	int (*run)(const struct cmd_call *call, struct diag *diag);
};

extern const struct cmd cmd_attach, cmd_detach, cmd_start, cmd_stop, cmd_clear, cmd_status,
	cmd_ping, cmd_shutdown, cmd_snapshot, cmd_callers, cmd_callees, cmd_threads, cmd_coroutines,
	cmd_tree, cmd_lines, cmd_counters, cmd_memory, cmd_waits, cmd_gil, cmd_report, cmd_diff,
	cmd_record, cmd_run, cmd_ps, cmd_timeline, cmd_slow, cmd_top, cmd_ui, cmd_watch, cmd_doctor,
	cmd_dump, cmd_objects, cmd_history, cmd_push, cmd_fleet, cmd_completion;

/* All commands, in the order of the help text; ends with NULL. */
extern const struct cmd *const cmds[];

/* Options of the program and of all commands, for struct cmdline */
extern const struct opt cmd_global_opts[];

/* A parsed command line */
struct cmdline {
	const struct cmd *cmd; /* NULL: the program's help or version */
	const char *socket;    /* as given, or NULL */
	bool help, version;
	_Alignas(max_align_t) char opts[CMD_OPTS_MAX];
	char **operands;
	int noperands;
};

/* Global options may precede or follow the command. Exit code 2. Borrows from argv. */
int cmdline_parse(int argc, char **argv, struct cmdline *ret, struct diag *diag);

/* Print a command's help; the program's if cmd is NULL. */
void cmd_help(const struct cmd *cmd, FILE *out);

#endif
