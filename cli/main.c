// SPDX-License-Identifier: BSD-2-Clause
/* pyprofctl: parses the command line, runs the command, prints errors as one line. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sockpath.h"
#include "base/terminal.h"
#include "cmd.h"
#include "pyprof/version.h"

/* A closed pipe (`| head`) is not an error; a full disk is. */
static int finish_output(FILE *out, struct diag *diag)
{
	int err = 0;

	errno = EIO;
	if (fflush(out) != 0 || ferror(out))
		err = errno;
	if (out != stdout)
		fclose(out);
	if (!err || err == EPIPE)
		return 0;
	return diag_set(diag, -err, PYP_EXIT_FAILURE, "the daemon keeps the data",
			"cannot write the output: %s", strerror(err));
}

static int run(const struct cmdline *cl, struct diag *diag)
{
	FILE *out = isatty(STDOUT_FILENO) ? terminal_open(STDOUT_FILENO) : stdout;
	const struct cmd_call call = {
		.socket = sockpath_choose(cl->socket),
		.opts = cl->opts,
		.operands = cl->operands,
		.noperands = cl->noperands,
		.out = out,
	};
	int r, written;

	if (!out)
		return diag_errno(diag, ENOMEM, "cannot write to the terminal");
	r = cl->cmd->run(&call, diag);
	written = finish_output(out, diag);
	return r < 0 ? r : written;
}

int main(int argc, char **argv)
{
	struct cmdline cl;
	struct diag diag = {0};
	int r;

	log_init("pyprofctl");
	signal(SIGPIPE, SIG_IGN); /* sockets and stdout report EPIPE instead */
	r = cmdline_parse(argc, argv, &cl, &diag);
	if (r < 0)
		return log_diag(&diag, r);
	if (cl.help)
		cmd_help(cl.cmd, stdout);
	else if (cl.version)
		puts("pyprofctl " PYPROF_VERSION);
	else
		r = run(&cl, &diag);
	if (r < 0 && diag.err && !diag.msg[0])
		return (int)diag.exit; /* already reported */
	return r < 0 ? log_diag(&diag, r) : PYP_EXIT_OK;
}
