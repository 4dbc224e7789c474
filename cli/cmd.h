/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pyprofctl's commands: one `const struct cmd` each, listed in cmds.c. A command is its options
 * (a table over a struct of its own), how many operands it takes, and what it does.
 */
#ifndef PYPROFCTL_CMD_H
#define PYPROFCTL_CMD_H

#include <limits.h>
#include <stddef.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/opts.h"

#define CMD_OPTS_MAX 512
#define CMD_ANY	     INT_MAX

/* What a command is run with. */
struct cmd_call {
	const char *socket; /* chosen: option, environment or default */
	const void *opts;   /* the command's own struct */
	char **operands;    /* ends with NULL */
	int noperands;
	FILE *out;
};

struct cmd {
	const char *name;
	const char *operands; /* as help shows them, or NULL */
	const char *summary;
	const struct opt *opts; /* NULL: none */
	size_t opts_size;	/* of its struct, at most CMD_OPTS_MAX; zeroed before parsing */
	/* It attaches: target_opt_table, and where its struct has the struct target_opts_given. */
	const struct opt *target_opts;
	size_t target_at;
	int min_operands, max_operands;
	int (*run)(const struct cmd_call *call, struct diag *diag);
};

extern const struct cmd cmd_attach, cmd_detach, cmd_start, cmd_stop, cmd_clear, cmd_status,
	cmd_ping, cmd_shutdown, cmd_snapshot, cmd_callers, cmd_callees, cmd_threads, cmd_coroutines,
	cmd_tree, cmd_counters, cmd_memory, cmd_waits, cmd_gil, cmd_report, cmd_diff, cmd_record,
	cmd_run, cmd_timeline, cmd_top, cmd_watch, cmd_doctor, cmd_dump, cmd_objects,
	cmd_completion;

/* All commands, in the order of the help text; ends with NULL. */
extern const struct cmd *const cmds[];

/* Options that every command has, and the program itself; over struct cmdline. */
extern const struct opt cmd_global_opts[];

/* A whole command line, parsed. */
struct cmdline {
	const struct cmd *cmd; /* NULL: help or version of the program */
	const char *socket;    /* as given, or NULL */
	bool help, version;
	_Alignas(max_align_t) char opts[CMD_OPTS_MAX];
	char **operands;
	int noperands;
};

/* Global options come before the command or behind it. Exit code 2. Borrows from argv. */
int cmdline_parse(int argc, char **argv, struct cmdline *ret, struct diag *diag);

/* cmd NULL: of the program. */
void cmd_help(const struct cmd *cmd, FILE *out);

#endif
