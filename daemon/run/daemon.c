// SPDX-License-Identifier: BSD-2-Clause
/*
 * One run of pyprofd: see daemon.h.
 *
 * The server runs first, then the targets of the command line are attached in the event loop, one
 * after the other. Until the last one is attached, most requests wait.
 *
 * Whatever ends a run (signal, duration, end of the targets, a client's request), finish() detaches
 * the probes. When all records are read and costs are known, the profile is written, pending
 * responses are completed, and the loop is left.
 */
#include "run/daemon.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/consent.h"
#include "base/helper.h"
#include "base/log.h"
#include "base/reaper.h"
#include "continuous/continuous.h"
#include "push/pusher.h"
#include "run/cutter.h"
#include "run/launch.h"
#include "run/results.h"
#include "server/http_listener.h"
#include "server/server.h"
#include "server/socket.h"
#include "session/session.h"

/* How long the end waits for receivers of the last intervals */
#define PUSH_END_MS 3000
#define PUSH_EVERY  UINT64_C(10000000000) /* ns */
/* Interval of checking whether results can be written */
#define RESULTS_US 5000

struct daemon {
	const struct options *opts;
	struct sd_event *event;
	struct sd_event_source *finish;
	struct sd_event_source *attach;	 /* deferred: go on attaching */
	struct sd_event_source *answer;	 /* stdin, while the user is asked for consent */
	struct sd_event_source *results; /* timer, while results wait for records and costs */
	struct sessions_listener listener;
	struct control_socket *sock;
	struct http_listener *http;
	struct sessions *sessions;
	struct server *server;
	struct continuous *continuous; /* NULL: another mode, or it has ended */
	struct launch *launch;
	struct pusher *pusher;	   /* NULL: nothing is pushed, like the cutter */
	struct cutter *cutter;	   /* NULL as well in continuous mode */
	struct interval_sink push; /* in continuous mode */
	sigset_t old_mask;
	struct rlimit old_files;
	pid_t given[OPT_PIDS_MAX + 1]; /* pids of --pid and the command; 0: ended */
	size_t ngiven;
	gid_t readers;	   /* the group that may read */
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	size_t next;	   /* index of the pid that is being attached */
	enum { NOT_ASKED, ASKING, AGREED, DECLINED } consent; /* to that */
	enum { ATTACHING_PIDS, ATTACHING_CMD, READY } stage;
	bool finishing;
	uint64_t finish_ns; /* results contain all that was recorded before */
	bool finished;	    /* results are written; or a negative errno and why not: */
	int failed;
	struct diag failure;
	int status; /* exit status */
};

/* --- the end --- */

static void leave_loop(void *ctx)
{
	struct daemon *d = ctx;

	(void)sd_event_exit(d->event, 0);
}

static void drain_server(struct daemon *d)
{
	if (!d->server || server_drain(d->server, leave_loop, d) < 0)
		leave_loop(d);
}

/* The daemon is ended while it is still attaching to what --pid names. */
static void log_not_attached(struct daemon *d)
{
	struct diag diag = {0};

	diag_set(&diag, -EINTR, PYP_EXIT_FAILURE, NULL, "stopped before attaching to process %d",
		 d->opts->pids.pid[d->next]);
	d->status = log_diag(&diag, diag.err);
}

static void on_pushed(void *ctx)
{
	drain_server(ctx);
}

/* Sends the last intervals, then ends. */
static void push_rest(struct daemon *d)
{
	if (d->cutter)
		cutter_finish(d->cutter);
	if (!d->pusher || pusher_finish(d->pusher, PUSH_END_MS, on_pushed, d) < 0)
		drain_server(d);
}

static void complete_results(struct daemon *d)
{
	d->failed = results_write(d->sessions, d->opts, &d->failure);
	d->finished = true;
	if (d->failed < 0)
		d->status = log_diag(&d->failure, d->failed);
	if (d->stage == ATTACHING_PIDS)
		log_not_attached(d);
	push_rest(d);
}

/* Results wait for records and costs, but not a profile that nobody wants. */
static bool results_wait(const struct daemon *d)
{
	return (d->cutter || results_wanted(d->sessions, d->opts)) &&
	       !sessions_current(d->sessions, 0, d->finish_ns);
}

static int on_results(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	(void)usec;
	if (!results_wait(d)) {
		complete_results(d);
		return 0;
	}
	(void)sd_event_source_set_time_relative(source, RESULTS_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* -EINPROGRESS: results are not written yet. */
static int finish(struct daemon *d, struct diag *diag)
{
	int r;

	if (!d->finishing) {
		d->finishing = true;
		sd_notify(0, "STOPPING=1");
		if (d->launch)
			launch_cancel(d->launch);
		if (d->server)
			server_refuse(d->server);
		continuous_free(TAKE_PTR(d->continuous));
		r = sessions_stop(d->sessions, 0, NULL);
		if (r < 0)
			log_debug("stopping: %s", strerror(-r));
		d->finish_ns = clock_monotonic_ns();
		(void)on_results(d->results, 0, d);
	}
	if (!d->finished)
		return -EINPROGRESS;
	if (d->failure.err)
		diag_set(diag, d->failure.err, d->failure.exit, d->failure.hint, "%s",
			 d->failure.msg);
	return d->failed;
}

/* Setup failed: do not write a profile. */
static void give_up(struct daemon *d, int err, const struct diag *diag)
{
	d->status = log_diag(diag, err);
	d->finishing = d->finished = true;
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
	bool any = d->stage != READY, given = false;

	log_info("process %d has ended", pid);
	if (d->continuous)
		continuous_ended(d->continuous, pid);
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

/* SIGCHLD must not interrupt system calls; children are reaped by their pidfds. */
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

static int on_child_ended(struct sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	(void)source, (void)fd, (void)revents, (void)userdata;
	(void)reaper_pending();
	return 0;
}

static int on_attach(struct sd_event_source *source, void *userdata);

static int make_loop(struct daemon *d, struct diag *diag)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	int r;

	r = block_signals(d);
	if (r >= 0)
		r = sd_event_new(&d->event);
	if (r >= 0)
		r = reaper_fd();
	if (r >= 0)
		r = sd_event_add_io(d->event, NULL, r, EPOLLIN, on_child_ended, NULL);
	for (size_t i = 0; r >= 0 && i < sizeof(signals) / sizeof(signals[0]); i++)
		r = sd_event_add_signal(d->event, NULL, signals[i], on_signal, d);
	if (r >= 0)
		r = sd_event_add_defer(d->event, &d->finish, on_finish, d);
	if (r >= 0)
		r = sd_event_source_set_enabled(d->finish, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_defer(d->event, &d->attach, on_attach, d);
	if (r >= 0)
		r = sd_event_source_set_enabled(d->attach, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(d->event, &d->results, CLOCK_MONOTONIC, 0, 1,
					       on_results, d);
	if (r >= 0)
		r = sd_event_source_set_enabled(d->results, SD_EVENT_OFF);
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

/* Returns whether it has children that are not on the command line either. */
static bool leaves_out(const struct daemon *d, const struct workers_use *u)
{
	const struct opt_pids *pids = &d->opts->pids;
	size_t given = 0;

	for (size_t i = 0; i < u->n; i++)
		for (size_t k = 0; k < pids->n; k++)
			given += pids->pid[k] == u->pid[i];
	return given < u->n;
}

static void log_forecast(const struct daemon *d, pid_t pid, const struct session_forecast *f)
{
	const char *advice = forecast_advice(&f->forecast, f->cost);
	char text[FORECAST_TEXT], children[WORKERS_TEXT];

	if (*f->name)
		/* A warning, so that it is visible without -v. */
		log_warning("%d %s: %s", pid, f->name,
			    forecast_text(&f->forecast, f->cost, f->limit, text));
	if (advice)
		log_warning("process %d: expected overhead about %.0f %% of its own CPU time: %s",
			    pid, 100 * f->cost, advice);
	if (leaves_out(d, &f->workers) && workers_text(&f->workers, children))
		log_warning("process %d: %s", pid, children);
}

static int on_answer(struct sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct daemon *d = userdata;
	char line[256] = "";

	(void)source, (void)revents;
	d->answer = sd_event_source_disable_unref(d->answer);
	d->consent = read(fd, line, sizeof(line) - 1) > 0 && consent_agrees(line) ? AGREED
										  : DECLINED;
	return sd_event_source_set_enabled(d->attach, SD_EVENT_ONESHOT);
}

static int ask(struct daemon *d, const struct session_forecast *f, struct diag *diag)
{
	char text[FORECAST_TEXT];
	int r;

	r = sd_event_add_io(d->event, &d->answer, STDIN_FILENO, EPOLLIN, on_answer, d);
	if (r < 0)
		return diag_errno(diag, -r, "cannot read the answer to a question");
	d->consent = ASKING;
	consent_ask(forecast_question(&f->forecast, &d->opts->target, text));
	return -EINPROGRESS;
}

/*
 * Of a process that was inspected. -EINPROGRESS: the user is being asked. What was found out may be
 * forgotten meanwhile, and is then found out again.
 */
static int get_consent(struct daemon *d, pid_t pid, struct diag *diag)
{
	const struct session_forecast f = sessions_forecast(d->sessions, pid, &d->opts->target);

	switch (d->consent) {
	case ASKING:
		return -EINPROGRESS;
	case DECLINED:
		return consent_declined(pid, diag);
	case AGREED:
		return 0;
	case NOT_ASKED:
		break;
	}
	log_forecast(d, pid, &f);
	switch (consent_for(100 * f.cost, d->opts->yes, consent_can_ask())) {
	case CONSENT_WANTED:
		return ask(d, &f, diag);
	case CONSENT_REFUSED:
		return consent_refused(pid, 100 * f.cost, diag);
	case CONSENT_GIVEN:
		break;
	}
	d->consent = AGREED;
	return 0;
}

/* -EINPROGRESS: on_attach() is called when it has come further. */
static int attach_pids(struct daemon *d, struct diag *diag)
{
	const struct opt_pids *pids = &d->opts->pids;

	for (; d->next < pids->n; d->next++, d->consent = NOT_ASKED) {
		pid_t pid = pids->pid[d->next];
		int r = sessions_look(d->sessions, pid, &d->opts->target, d->start_ns, diag);

		if (r == 0)
			r = get_consent(d, pid, diag);
		if (r == -EINPROGRESS)
			return r;
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
	int r;

	d->stage = READY;
	if (d->opts->duration_ns) {
		r = sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC,
					       d->opts->duration_ns / 1000, 1000, on_duration, d);
		if (r < 0)
			return diag_errno(diag, -r, "cannot set the duration's timer");
	}
	server_started(d->server);
	sd_notify(0, "READY=1");
	log_info("ready at '%s'", control_socket_path(d->sock));
	if (d->http)
		log_info("listening on http%s://%s/", d->http->cert ? "s" : "", d->http->text);
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

/* A program that has not started cannot be observed for a forecast. */
static void log_no_forecast(const struct daemon *d)
{
	const struct target_opts *t = &d->opts->target;

	if (t->mode.mode != MODE_SAMPLE && !target_opts_limit(t))
		log_warning("%s: no forecast: it has not started, and every call will be %s",
			    d->opts->cmd[0], t->mode.mode == MODE_COUNT ? "counted" : "traced");
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

/* Attach what is not attached yet. */
static int go_on(struct daemon *d, struct diag *diag)
{
	int r = attach_pids(d, diag);

	if (r < 0)
		return r == -EINPROGRESS ? 0 : r;
	if (!d->opts->cmd)
		return get_ready(d, diag);
	d->stage = ATTACHING_CMD;
	log_no_forecast(d);
	return launch_cmd(d, diag);
}

static int on_attach(struct sd_event_source *source, void *userdata)
{
	struct daemon *d = userdata;
	struct diag diag = {0};
	int r;

	(void)source;
	if (d->finishing || d->stage != ATTACHING_PIDS)
		return 0;
	r = go_on(d, &diag);
	if (r < 0)
		give_up(d, r, &diag);
	return 0;
}

static void on_looked(void *ctx)
{
	struct daemon *d = ctx;

	(void)sd_event_source_set_enabled(d->attach, SD_EVENT_ONESHOT);
}

static json_t *status_of_continuous(void *ctx)
{
	struct daemon *d = ctx;

	return d->continuous ? continuous_status(d->continuous) : json_null();
}

static const struct keep *history_of(void *ctx)
{
	const struct daemon *d = ctx;

	return d->continuous ? continuous_kept(d->continuous) : NULL;
}

static void cut_intervals(void *ctx, pid_t pid, bool detaches)
{
	struct daemon *d = ctx;

	if (d->continuous)
		continuous_cut(d->continuous, pid);
	if (d->cutter)
		cutter_cut(d->cutter, pid, detaches);
}

/* Continuous mode cuts intervals itself. */
static void push_interval(void *ctx, const struct interval *iv)
{
	struct daemon *d = ctx;
	struct interval *copy = interval_copy(iv);

	if (copy)
		pusher_add(d->pusher, copy);
	else
		log_warning("an interval is not sent: %s", strerror(ENOMEM));
}

static int start_continuous(struct daemon *d, struct diag *diag)
{
	const struct options *o = d->opts;
	const struct continuous_opts co = {
		.match = o->match,
		.unit = o->unit,
		.target = o->target,
		.interval_ns = o->interval_ns,
		.labels = &o->labels,
		.memory_bytes = o->keep_memory,
		.disk_bytes = o->keep_size,
		.dir = o->keep,
		.merge_after_ns = o->merge_after_ns,
		.merge_to_ns = o->merge_to_ns > o->interval_ns ? o->merge_to_ns : 0,
	};

	int r = o->continuous ? continuous_new(d->event, d->sessions, &co, &d->continuous, diag)
			      : 0;

	if (r == 0 && d->continuous && d->pusher) {
		d->push = (struct interval_sink){.take = push_interval, .ctx = d};
		continuous_add_sink(d->continuous, &d->push);
	}
	return r;
}

/* Before the targets: the senders are forked while the daemon holds no data. */
static int make_pusher(struct daemon *d, struct diag *diag)
{
	const struct options *o = d->opts;
	const struct pusher_opts po = {
		.urls = (const char *const *)o->push.v,
		.nurls = o->push.n,
		.transport = o->push_opts.transport,
		.queue_bytes = o->push_queue,
	};

	return o->push.n ? pusher_new(d->event, &po, &d->pusher, diag) : 0;
}

static int make_cutter(struct daemon *d, struct diag *diag)
{
	const struct options *o = d->opts;
	const struct cutter_opts co = {
		.sessions = d->sessions,
		.pusher = d->pusher,
		.every_ns = o->push_every_ns ? o->push_every_ns : PUSH_EVERY,
		.service = o->push_opts.service,
	};

	return d->pusher && !o->continuous ? cutter_new(d->event, &co, &d->cutter, diag) : 0;
}

static int start_server(struct daemon *d, struct diag *diag)
{
	const struct server_opts so = {
		.routes = {.sessions = d->sessions,
			   .start_ns = d->start_ns,
			   .owner = geteuid(),
			   .readers = d->readers,
			   .metrics_functions = d->opts->metrics_functions,
			   .pusher = d->pusher,
			   .starting = true,
			   .shutdown = on_shutdown,
			   .continuous = status_of_continuous,
			   .history = history_of,
			   .cut = cut_intervals,
			   .ctx = d},
		.http = d->http,
	};

	d->listener = (struct sessions_listener){.looked = on_looked, .ctx = d};
	sessions_listen(d->sessions, &d->listener);
	return server_new(d->event, control_socket_fd(d->sock), &so, &d->server, diag);
}

static int open_http(struct daemon *d, struct diag *diag)
{
	const struct http_listener_opts ho = {
		.addr = d->opts->http,
		.token_file = d->opts->http_token_file,
		.cert = d->opts->http_cert,
		.key = d->opts->http_key,
	};

	return http_listener_open(&ho, &d->http, diag);
}

/* Use the inherited socket, or open the configured one. */
static int open_socket(struct daemon *d, struct diag *diag)
{
	int n = sd_listen_fds(1);

	if (n > 1)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"pass exactly one Unix stream socket", "LISTEN_FDS is %d", n);
	return n == 1 ? control_socket_adopt(SD_LISTEN_FDS_START, &d->sock, diag)
		      : control_socket_open(d->opts->socket, d->readers, &d->sock, diag);
}

static int set_up(struct daemon *d, struct diag *diag)
{
	int r;

	helper_prepare();
	allow_many_files(d);
	r = results_check(d->opts, diag);
	if (r == 0)
		r = peer_find_group(d->opts->group, &d->readers, diag);
	if (r == 0)
		r = make_loop(d, diag);
	if (r == 0)
		r = open_socket(d, diag);
	if (r == 0)
		r = open_http(d, diag);
	if (r == 0)
		r = make_pusher(d, diag);
	if (r == 0)
		r = make_sessions(d, diag);
	if (r == 0)
		r = make_cutter(d, diag);
	if (r == 0)
		r = start_server(d, diag);
	if (r == 0)
		r = start_continuous(d, diag);
	return r == 0 ? go_on(d, diag) : r;
}

static void tear_down(struct daemon *d)
{
	launch_free(d->launch);
	continuous_free(d->continuous);
	server_free(d->server);
	pusher_free(d->pusher);
	cutter_free(d->cutter);
	sessions_free(d->sessions);
	control_socket_free(d->sock);
	http_listener_free(d->http);
	sd_event_source_disable_unref(d->finish);
	sd_event_source_disable_unref(d->attach);
	sd_event_source_disable_unref(d->answer);
	sd_event_source_disable_unref(d->results);
	sd_event_unref(d->event);
}

int daemon_run(const struct options *opts)
{
	struct daemon d = {.opts = opts, .start_ns = clock_monotonic_ns()};
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
