// SPDX-License-Identifier: BSD-2-Clause
/*
 * completion: prints completion scripts for bash, zsh and fish, generated from the option tables.
 */
#include "cmd.h"

#include <errno.h>
#include <string.h>

#include "format/format.h"
#include "format/sort.h"

#define PIDS "$(cd /proc && echo [0-9]*)"

/* Type of an option's value or of an operand */
enum value { VALUE_NONE, VALUE_ANY, VALUE_FILE, VALUE_PID, VALUE_FORMAT, VALUE_SORT, VALUE_CHOICE };

static enum value value_of(const struct opt *o)
{
	switch (o->type) {
	case OPT_FLAG:
	case OPT_OFF:
		return VALUE_NONE;
	case OPT_CHOICE:
		return VALUE_CHOICE;
	case OPT_PID:
	case OPT_PIDS:
	case OPT_WORDS:
		return strcmp(o->arg, "TID") == 0 || strcmp(o->arg, "COND") == 0 ? VALUE_ANY
										 : VALUE_PID;
	default:
		break;
	}
	if (o->choices)
		return VALUE_CHOICE;
	if (strcmp(o->arg, "FORMAT") == 0)
		return VALUE_FORMAT;
	if (strcmp(o->arg, "KEY[,KEY]") == 0)
		return VALUE_SORT;
	return strcmp(o->arg, "FILE") == 0 || strcmp(o->arg, "PATH") == 0 ? VALUE_FILE : VALUE_ANY;
}

static enum value operands_of(const struct cmd *c)
{
	static const char *const files[] = {"FILE", "BEFORE", "COMMAND", "BINARY"};

	for (size_t i = 0; c->operands && i < sizeof(files) / sizeof(files[0]); i++)
		if (strstr(c->operands, files[i]))
			return VALUE_FILE;
	return c->operands && strstr(c->operands, "PID") ? VALUE_PID : VALUE_ANY;
}

/* Returns word i of the words that the option's value can be; NULL beyond the last one. */
static const char *word(const struct opt *o, size_t i)
{
	switch (value_of(o)) {
	case VALUE_CHOICE:
		return o->choices[i];
	case VALUE_SORT:
		return sort_key_name(i);
	default:
		return formats[i].name;
	}
}

static void put_words(const struct opt *o, FILE *out)
{
	const char *blank = "", *w;

	for (size_t i = 0; (w = word(o, i)); i++)
		if (*w) {
			fprintf(out, "%s%s", blank, w);
			blank = " ";
		}
}

static bool has_words(enum value v)
{
	return v == VALUE_CHOICE || v == VALUE_FORMAT || v == VALUE_SORT;
}

/* Print help for use in single quotes, on one line, with the characters in `escape` escaped. */
static void put_help(const char *help, const char *escape, FILE *out)
{
	for (; *help; help++) {
		if (*help == '\'')
			fputs("'\\''", out);
		else if (*help == '\n')
			putc(' ', out);
		else
			fprintf(out, "%s%c", strchr(escape, *help) ? "\\" : "", *help);
	}
}

typedef void (*opt_fn)(const struct cmd *c, const struct opt *o, FILE *out);

/* Call fn for all options of a command (NULL: of the program), global ones included. */
static void each_opt(const struct cmd *c, opt_fn fn, FILE *out)
{
	for (const struct opt *o = c ? c->opts : NULL; o && o->name; o++)
		fn(c, o, out);
	for (const struct opt *o = c ? c->target_opts : NULL; o && o->name; o++)
		fn(c, o, out);
	for (const struct opt *o = cmd_global_opts; o->name; o++)
		fn(c, o, out);
}

/* ---- bash ---- */

static void bash_name(const struct cmd *c, const struct opt *o, FILE *out)
{
	(void)c;
	if (o->short_name)
		fprintf(out, " -%c", o->short_name);
	fprintf(out, " --%s", o->name);
}

static void bash_value(const struct cmd *c, const struct opt *o, FILE *out)
{
	enum value v = value_of(o);

	if (v == VALUE_NONE || !c)
		return;
	fprintf(out, "\t%s:--%s", c->name, o->name);
	if (o->short_name)
		fprintf(out, " | %s:-%c", c->name, o->short_name);
	fputs(")\n\t\t", out);
	if (v == VALUE_FILE) {
		fputs("compopt -o default", out);
	} else if (v == VALUE_PID) {
		fputs("words=\"" PIDS "\"", out);
	} else if (v != VALUE_ANY) {
		fputs("words='", out);
		put_words(o, out);
		putc('\'', out);
	} else {
		putc(':', out);
	}
	fputs(" ;;\n", out);
}

static void bash_command(const struct cmd *c, FILE *out)
{
	enum value v = operands_of(c);

	fprintf(out, "\t%s:*)\n\t\twords='", c->name);
	each_opt(c, bash_name, out);
	putc('\'', out);
	if (v == VALUE_PID)
		fputs("\n\t\t[[ $cur == -* ]] || words=\"" PIDS "\"", out);
	if (v == VALUE_FILE)
		fputs("\n\t\t[[ $cur == -* ]] || { words=; compopt -o default; }", out);
	fputs(" ;;\n", out);
}

static void bash_write(FILE *out)
{
	fputs("# bash completion for pyprofctl\n"
	      "_pyprofctl() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= words= "
	      "i\n"
	      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\tcase ${COMP_WORDS[i]} in\n"
	      "\t\t--socket) ((i++)) ;;\n"
	      "\t\t-*) ;;\n"
	      "\t\t*) cmd=${COMP_WORDS[i]}; break ;;\n"
	      "\t\tesac\n"
	      "\tdone\n"
	      "\tCOMPREPLY=()\n"
	      "\tcase $cmd:$prev in\n"
	      "\t:--socket) compopt -o default ;;\n"
	      "\t:*) words='",
	      out);
	for (const struct cmd *const *c = cmds; *c; c++)
		fprintf(out, "%s%s", c == cmds ? "" : " ", (*c)->name);
	each_opt(NULL, bash_name, out);
	fputs("' ;;\n", out);
	for (const struct cmd *const *c = cmds; *c; c++)
		each_opt(*c, bash_value, out);
	for (const struct cmd *const *c = cmds; *c; c++)
		bash_command(*c, out);
	fputs("\tesac\n"
	      "\t[[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	      "}\n"
	      "complete -F _pyprofctl pyprofctl\n",
	      out);
}

/* ---- zsh ---- */

static void zsh_action(enum value v, const struct opt *o, FILE *out)
{
	if (v == VALUE_FILE) {
		fputs("_files", out);
	} else if (v == VALUE_PID) {
		fputs("_pids", out);
	} else if (has_words(v)) {
		putc('(', out);
		put_words(o, out);
		putc(')', out);
	} else {
		putc(' ', out); /* an action that offers nothing ("" would not parse) */
	}
}

static void zsh_opt(const struct cmd *c, const struct opt *o, FILE *out)
{
	enum value v = value_of(o);

	(void)c;
	if (o->short_name && o->type == OPT_WORDS) /* repeatable */
		fprintf(out, " \\\n\t\t\t'*'{-%c,--%s}'[", o->short_name, o->name);
	else if (o->short_name)
		fprintf(out, " \\\n\t\t\t'(-%c --%s)'{-%c,--%s}'[", o->short_name, o->name,
			o->short_name, o->name);
	else
		fprintf(out, " \\\n\t\t\t'--%s[", o->name);
	put_help(o->help, "[]:\\", out);
	putc(']', out);
	if (v != VALUE_NONE) {
		putc(':', out);
		put_help(o->arg, "[]:\\", out);
		putc(':', out);
		zsh_action(v, o, out);
	}
	putc('\'', out);
}

static void zsh_write(FILE *out)
{
	fputs("#compdef pyprofctl\n"
	      "_pyprofctl() {\n"
	      "\tlocal cmd= i\n"
	      "\tlocal -a commands\n"
	      "\tcommands=(\n",
	      out);
	for (const struct cmd *const *c = cmds; *c; c++) {
		fprintf(out, "\t\t'%s:", (*c)->name);
		put_help((*c)->summary, ":\\", out);
		fputs("'\n", out);
	}
	fputs("\t)\n"
	      "\tfor ((i = 2; i < CURRENT; i++)); do\n"
	      "\t\tcase $words[i] in\n"
	      "\t\t--socket) ((i++)) ;;\n"
	      "\t\t-*) ;;\n"
	      "\t\t*) cmd=$words[i]; break ;;\n"
	      "\t\tesac\n"
	      "\tdone\n"
	      "\t# the command's own options and operands are counted from the command on\n"
	      "\tif [[ -n $cmd ]]; then\n"
	      "\t\twords=(\"${(@)words[i,-1]}\")\n"
	      "\t\t((CURRENT -= i - 1))\n"
	      "\tfi\n"
	      "\tcase $cmd in\n"
	      "\t'')\n\t\t_describe command commands\n\t\t_arguments",
	      out);
	each_opt(NULL, zsh_opt, out);
	fputs(" ;;\n", out);
	for (const struct cmd *const *c = cmds; *c; c++) {
		fprintf(out, "\t%s)\n\t\t_arguments", (*c)->name);
		each_opt(*c, zsh_opt, out);
		/* zsh offers no options for a command whose operands have nothing to offer */
		if ((*c)->operands && operands_of(*c) != VALUE_ANY) {
			fputs(" \\\n\t\t\t'*:", out);
			put_help((*c)->operands, "[]:\\", out);
			putc(':', out);
			zsh_action(operands_of(*c), NULL, out);
			putc('\'', out);
		}
		fputs(" ;;\n", out);
	}
	fputs("\tesac\n}\n_pyprofctl \"$@\"\n", out);
}

/* ---- fish ---- */

static void fish_begin(const struct cmd *c, FILE *out)
{
	if (c)
		fprintf(out, "complete -c pyprofctl -n '__pyprofctl_in %s'", c->name);
	else
		fputs("complete -c pyprofctl", out);
}

static void fish_value(enum value v, const struct opt *o, FILE *out)
{
	if (v == VALUE_FILE) {
		fputs(" -r -F", out);
	} else if (v == VALUE_PID) {
		fputs(" -x -a '(__fish_complete_pids)'", out);
	} else if (has_words(v)) {
		fputs(" -x -a '", out);
		put_words(o, out);
		putc('\'', out);
	} else if (v == VALUE_ANY) {
		fputs(" -x", out);
	}
}

static void fish_opt(const struct cmd *c, const struct opt *o, FILE *out)
{
	fish_begin(c, out);
	if (o->short_name)
		fprintf(out, " -s %c", o->short_name);
	fprintf(out, " -l %s", o->name);
	fish_value(value_of(o), o, out);
	fputs(" -d '", out);
	put_help(o->help, "", out);
	fputs("'\n", out);
}

static void fish_write(FILE *out)
{
	fputs("# fish completion for pyprofctl\n"
	      "function __pyprofctl_in -a wanted\n"
	      "    set -l cmd\n"
	      "    set -l words (commandline -opc)\n"
	      "    set -e words[1]\n"
	      "    while set -q words[1]; and test -z \"$cmd\"\n"
	      "        switch $words[1]\n"
	      "            case --socket\n"
	      "                set -e words[1]\n"
	      "            case '-*'\n"
	      "            case '*'\n"
	      "                set cmd $words[1]\n"
	      "        end\n"
	      "        set -e words[1]\n"
	      "    end\n"
	      "    test \"$cmd\" = \"$wanted\"\n"
	      "end\n"
	      "complete -c pyprofctl -f\n",
	      out);
	for (const struct opt *o = cmd_global_opts; o->name; o++)
		fish_opt(NULL, o, out);
	for (const struct cmd *const *c = cmds; *c; c++) {
		enum value v = operands_of(*c);

		fprintf(out, "complete -c pyprofctl -n '__pyprofctl_in \"\"' -a %s -d '",
			(*c)->name);
		put_help((*c)->summary, "", out);
		fputs("'\n", out);
		for (const struct opt *o = (*c)->opts; o && o->name; o++)
			fish_opt(*c, o, out);
		for (const struct opt *o = (*c)->target_opts; o && o->name; o++)
			fish_opt(*c, o, out);
		if (v == VALUE_FILE || v == VALUE_PID) {
			fish_begin(*c, out);
			fputs(v == VALUE_FILE ? " -F\n" : " -a '(__fish_complete_pids)'\n", out);
		}
	}
}

/* ---- the command ---- */

static int run(const struct cmd_call *call, struct diag *diag)
{
	static const struct {
		const char *name;
		void (*write)(FILE *out);
	} shells[] = {{"bash", bash_write}, {"zsh", zsh_write}, {"fish", fish_write}};

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (strcmp(call->operands[0], shells[i].name) == 0) {
			shells[i].write(call->out);
			return 0;
		}
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected bash, zsh or fish",
			"no completion for '%s'", call->operands[0]);
}

const struct cmd cmd_completion = {
	.name = "completion",
	.operands = "bash|zsh|fish",
	.summary = "Print the completion script for a shell",
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
