// SPDX-License-Identifier: BSD-2-Clause
/*
 * ui: a page in the browser that follows the daemon. This process serves it, on this machine only, and
 * forwards its requests to the daemon's socket.
 */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "format/pages.h"
#include "ui_server.h"
#include "visit.h"

struct ui_opts {
	uint64_t port; /* 0: any free one */
	bool no_open;
};

#define FIELD(f) .offset = offsetof(struct ui_opts, f)

static const struct opt ui_opts[] = {
	{"port", 0, OPT_U64, FIELD(port), "N", "port on 127.0.0.1 (default: any free one)",
	 .min = 1, .max = UINT16_MAX},
	{"no-open", 0, OPT_FLAG, FIELD(no_open), NULL, "only print the URL, open no browser"},
	{NULL},
};

/*
 * A file for the browser that leads to the URL, because all users of the machine can see a program's
 * arguments, and the URL has the token. fd: the new file's. Returns 0 or -errno.
 */
static int write_link(int fd, const char *url)
{
	int n = dprintf(fd,
			"<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"referrer\" "
			"content=\"no-referrer\"><meta http-equiv=\"refresh\" "
			"content=\"0; url=%s\"><title>pyprofd</title>\n",
			url);

	return n < 0 ? -errno : 0;
}

/* Returns false if there is no browser to open. */
static bool browser_open(const char *file)
{
	const char *const argv[] = {"xdg-open", file, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	int err;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	err = posix_spawnp(&pid, argv[0], &actions, &attr, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return err == 0;
}

/* Browsers refuse to run as root, and there is none without a display. *ret_file: to be removed. */
static void open_page(const char *url, char *file, size_t size)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	int fd;

	if (geteuid() == 0 || (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")))
		return;
	snprintf(file, size, "%s/pyprofctl-ui-XXXXXX.html", dir ? dir : "/tmp");
	fd = mkostemps(file, (int)strlen(".html"), O_CLOEXEC);
	if (fd < 0) {
		file[0] = '\0';
		return;
	}
	if (write_link(fd, url) == 0)
		(void)browser_open(file);
	close(fd);
}

static int run_ui(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(ui_server_freep) struct ui_server *s = NULL;
	const struct ui_opts *o = call->opts;
	char file[4096] = "";
	int r;

	if (!live_page_size)
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_FAILURE,
				"use `pyprofctl top`, or a build that has it",
				"no live page: npm was missing when this was built");
	visit_block_signals();
	r = ui_server_new(call->socket, (uint16_t)o->port, &s, diag);
	if (r < 0)
		return r;
	fprintf(call->out, "%s\n", ui_server_url(s));
	fflush(call->out);
	if (isatty(STDERR_FILENO))
		fputs("Whoever has this URL controls the daemon. Ctrl-C ends the page.\n", stderr);
	if (!o->no_open)
		open_page(ui_server_url(s), file, sizeof(file));
	while (visit_wait(CLOCK_NS_PER_S))
		ui_server_sweep(s);
	if (file[0])
		unlink(file);
	return 0;
}

const struct cmd cmd_ui = {
	.name = "ui",
	.summary = "Serve a page that follows the daemon, here only",
	.opts = ui_opts,
	.opts_size = sizeof(struct ui_opts),
	.run = run_ui,
};
