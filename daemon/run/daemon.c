// SPDX-License-Identifier: BSD-2-Clause
/*
 * One run of pyprofd: see daemon.h.
 *
 * Whatever ends a run (signal, duration, end of the targets, a client's request), finish() detaches
 * the probes, writes the profile, completes pending responses and leaves the loop.
 */
#include "run/daemon.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "run/launch.h"
#include "run/results.h"
#include "server/server.h"
#include "server/socket.h"
#include "session/session.h"

struct daemon {
	const struct options *opts;
	struct sd_event *event;
	struct sd_event_source *finish;
	struct control_socket *sock;
	struct sessions *sessions;
	struct server *server;
	struct launch *launch;
	sigset_t old_mask;
	struct rlimit old_files;
	pid_t given[OPT_PIDS_MAX + 1]; /* pids of --pid and the command; 0: ended */
	size_t ngiven;
	bool finished;
	int status; /* exit status */
};

/* --- the end --- */

static void leave_loop(void *ctx)
{
	struct daemon *d = ctx;

	(void)sd_event_exit(d->event, 0);
}

static int finish(struct daemon *d, struct diag *diag)
{
	int r;

	if (d->finished)
		return 0;
	d->finished = true;
	sd_notify(0, "STOPPING=1");
	r = sessions_stop(d->sessions, 0, NULL);
	if (r < 0)
		log_debug("stopping: %s", strerror(-r));
	r = results_write(d->sessions, d->opts, diag);
	if (r < 0)
		d->status = log_diag(diag, r);
	if (!d->server || server_drain(d->server, leave_loop, d) < 0)
		leave_loop(d);
	return r;
}

/* Setup failed: do not write a profile. */
static void give_up(struct daemon *d, int err, const struct diag *diag)
{
	d->status = log_diag(diag, err);
	d->finished = true;
	leave_loop(d);
}

static int on_finish(struct sd_event_source *source, void *userdata)
{
	struct diag diag = {0};

	(void)source;
	(void)finish(userdata, &diag);
	return 0;
}

/* Deferred, because finish() destroys objects that the caller may be using. */
static void finish_soon(struct daemon *d)
{
	(void)sd_event_source_set_enabled(d->finish, SD_EVENT_ONESHOT);
}

static int on_signal(struct sd_event_source *source, const struct signalfd_siginfo *si,
		     void *userdata)
{
	struct daemon *d = userdata;

	(void)source;
	log_info("%s", strsignal((int)si->ssi_signo));
	/* a signal from the terminal has reached the command, too */
	if (d->launch)
		launch_signal(d->launch, si->ssi_code == SI_KERNEL ? 0 : (int)si->ssi_signo);
	finish_soon(d);
	return 0;
}

static int on_duration(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source, (void)usec;
	finish_soon(userdata);
	return 0;
}

static int on_shutdown(void *ctx, struct diag *diag)
{
	return finish(ctx, diag);
}

/* A target counts as running while any process followed from it runs. */
static void on_end(void *ctx, pid_t pid)
{
	struct daemon *d = ctx;
	bool any = false, given = false;

	log_info("process %d has ended", pid);
	for (size_t i = 0; i < d->ngiven; i++) {
		if (d->given[i] && sessions_over(d->sessions, d->given[i])) {
			d->given[i] = 0;
			given = true;
		}
		any |= d->given[i] != 0;
	}
	if (given && !any)
		finish_soon(d);
}

/* --- the beginning --- */

/* SIGCHLD must not interrupt system calls; children are reaped elsewhere. */
static int block_signals(struct daemon *d)
{
	sigset_t mask;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGCHLD);
	return sigprocmask(SIG_BLOCK, &mask, &d->old_mask) < 0 ? -errno : 0;
}

/* Each sampled target needs a descriptor per CPU. */
static void allow_many_files(struct daemon *d)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &d->old_files) < 0)
		return;
	most = (struct rlimit){d->old_files.rlim_max, d->old_files.rlim_max};
	(void)setrlimit(RLIMIT_NOFILE, &most);
}

static int make_loop(struct daemon *d, struct diag *diag)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	int r;

	r = block_signals(d);
	if (r >= 0)
		r = sd_event_new(&d->event);
	for (size_t i = 0; r >= 0 && i < sizeof(signals) / sizeof(signals[0]); i++)
		r = sd_event_add_signal(d->event, NULL, signals[i], on_signal, d);
	if (r >= 0)
		r = sd_event_add_defer(d->event, &d->finish, on_finish, d);
	if (r >= 0)
		r = sd_event_source_set_enabled(d->finish, SD_EVENT_OFF);
	return r < 0 ? diag_errno(diag, -r, "cannot set up the event loop") : 0;
}

static int make_sessions(struct daemon *d, struct diag *diag)
{
	const struct session_opts so = {
		.target = d->opts->target,
		.clock = (enum snapshot_clock)d->opts->clock,
		.max_children = d->opts->max_children,
		.on_end = on_end,
		.ctx = d,
	};

	return sessions_new(d->event, &so, &d->sessions, diag);
}

/* Run the event loop until the process has been inspected. */
static int wait_inspected(struct daemon *d, pid_t pid, struct diag *diag)
{
	int r;

	while ((r = sessions_look(d->sessions, pid, &d->opts->target, 0, diag)) == -EINPROGRESS)
		if (sd_event_run(d->event, UINT64_MAX) < 0)
			return diag_set(diag, -EINTR, PYP_EXIT_FAILURE, NULL,
					"stopped before attaching to process %d", pid);
	return r;
}

static void log_forecast(const struct daemon *d, pid_t pid)
{
	struct session_forecast f = sessions_forecast(d->sessions, pid, &d->opts->target);
	const char *advice = forecast_advice(&f.forecast, f.cost);
	char text[FORECAST_TEXT];

	if (*f.name)
		/* A warning, so that it is visible without -v. */
		log_warning("%d %s: %s", pid, f.name, forecast_text(&f.forecast, f.cost, text));
	if (advice)
		log_warning("process %d: expected overhead about %.0f %% of its own CPU time: %s",
			    pid, 100 * f.cost, advice);
}

static int attach_pids(struct daemon *d, struct diag *diag)
{
	const struct opt_pids *pids = &d->opts->pids;

	for (size_t i = 0; i < pids->n; i++) {
		pid_t pid = pids->pid[i];
		int r = wait_inspected(d, pid, diag);

		if (r == 0)
			log_forecast(d, pid);
		d->given[d->ngiven++] = pid;
		if (r == 0)
			r = sessions_attach(d->sessions, pid, !d->opts->no_start, NULL, diag);
		if (r < 0)
			return r;
		log_info("attached to process %d", pid);
	}
	return 0;
}

/* All targets are attached: serve clients, and start the duration's timer. */
static int get_ready(struct daemon *d, struct diag *diag)
{
	const struct server_opts so = {
		.routes = {.sessions = d->sessions,
			   .start_ns = clock_monotonic_ns(),
			   .owner = geteuid(),
			   .shutdown = on_shutdown,
			   .ctx = d},
	};
	int r;

	r = server_new(d->event, control_socket_fd(d->sock), &so, &d->server, diag);
	if (r < 0)
		return r;
	if (d->opts->duration_ns) {
		r = sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC,
					       d->opts->duration_ns / 1000, 1000, on_duration, d);
		if (r < 0)
			return diag_errno(diag, -r, "cannot set the duration's timer");
	}
	sd_notify(0, "READY=1");
	log_info("ready at '%s'", control_socket_path(d->sock));
	return 0;
}

static void on_attached(void *ctx)
{
	struct daemon *d = ctx;
	struct diag diag = {0};
	int r;

	d->given[d->ngiven++] = launch_pid(d->launch);
	log_info("attached to the command, process %d", launch_pid(d->launch));
	r = get_ready(d, &diag);
	if (r < 0)
		give_up(d, r, &diag);
}

static void on_launch_failed(void *ctx, int err, const struct diag *diag)
{
	give_up(ctx, err, diag);
}

static int launch_cmd(struct daemon *d, struct diag *diag)
{
	const struct launch_opts lo = {
		.argv = d->opts->cmd,
		.sigmask = &d->old_mask,
		.files = &d->old_files,
		.sessions = d->sessions,
		.start = !d->opts->no_start,
		.attached = on_attached,
		.failed = on_launch_failed,
		.ctx = d,
	};

	return launch_start(d->event, &lo, &d->launch, diag);
}

/* Use the inherited socket, or open the configured one. */
static int open_socket(struct daemon *d, struct diag *diag)
{
	int n = sd_listen_fds(1);

	if (n > 1)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"pass exactly one Unix stream socket", "LISTEN_FDS is %d", n);
	return n == 1 ? control_socket_adopt(SD_LISTEN_FDS_START, &d->sock, diag)
		      : control_socket_open(d->opts->socket, &d->sock, diag);
}

static int set_up(struct daemon *d, struct diag *diag)
{
	int r;

	allow_many_files(d);
	r = results_check(d->opts, diag);
	if (r == 0)
		r = make_loop(d, diag);
	if (r == 0)
		r = open_socket(d, diag);
	if (r == 0)
		r = make_sessions(d, diag);
	if (r == 0)
		r = attach_pids(d, diag);
	if (r == 0)
		r = d->opts->cmd ? launch_cmd(d, diag) : get_ready(d, diag);
	return r;
}

static void tear_down(struct daemon *d)
{
	launch_free(d->launch);
	server_free(d->server);
	sessions_free(d->sessions);
	control_socket_free(d->sock);
	sd_event_source_disable_unref(d->finish);
	sd_event_unref(d->event);
}

int daemon_run(const struct options *opts)
{
	struct daemon d = {.opts = opts};
	struct diag diag = {0};
	int r;

	r = set_up(&d, &diag);
	if (r == 0) {
		r = sd_event_loop(d.event);
		if (r < 0)
			diag_errno(&diag, -r, "the event loop failed");
	}
	if (r < 0)
		d.status = log_diag(&diag, r);
	if (d.status == 0 && d.launch && opts->command_status)
		d.status = launch_status(d.launch);
	tear_down(&d);
	return d.status;
}
