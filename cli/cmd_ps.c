// SPDX-License-Identifier: BSD-2-Clause
/* ps: the Python processes of this machine. Runs without a daemon and without root. */
#include "cmd.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/terminal.h"
#include "find/processes.h"
#include "ps_table.h"

#define MEASURE_MS 200

struct ps_opts {
	bool json;
};

static const struct opt opts[] = {
	{"json", 0, OPT_FLAG, .offset = offsetof(struct ps_opts, json), NULL, "print JSON"},
	{NULL},
};

static const char *user_name(uid_t uid, char out[PS_USER_MAX])
{
	char buf[4096];
	struct passwd entry, *found = NULL;

	if (getpwuid_r(uid, &entry, buf, sizeof(buf), &found) || !found)
		snprintf(out, PS_USER_MAX, "%u", uid);
	else
		snprintf(out, PS_USER_MAX, "%s", entry.pw_name);
	return out;
}

static int print_json(const struct processes *l, const struct ps_style *style, FILE *out)
{
	json_t *root = ps_table_json(l, style);

	if (!root)
		return -ENOMEM;
	json_dumpf(root, out, JSON_INDENT(2));
	putc('\n', out);
	json_decref(root);
	return 0;
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct ps_opts *o = call->opts;
	const struct ps_style style = {
		.width = terminal_columns(call->out), .root = geteuid() == 0, .user = user_name};
	_cleanup_(processes_deinit) struct processes l = {0};
	int r = processes_list(&l, diag);

	if (r < 0)
		return r;
	processes_measure(&l, MEASURE_MS);
	processes_check(&l);
	if (!o->json)
		ps_table_print(&l, &style, call->out);
	else
		r = print_json(&l, &style, call->out);
	return r < 0 ? diag_errno(diag, -r, "cannot print the list") : 0;
}

const struct cmd cmd_ps = {
	.name = "ps",
	.summary = "List the Python processes here (no daemon)",
	.opts = opts,
	.opts_size = sizeof(struct ps_opts),
	.run = run,
};
