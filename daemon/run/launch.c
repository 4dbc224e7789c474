// SPDX-License-Identifier: BSD-2-Clause
/* Starting a command and attaching to it: see launch.h. */
#include "run/launch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/helper.h"
#include "base/log.h"

#define TRY_US	    1000
#define DEADLINE_US (2 * 1000 * 1000)

struct launch {
	struct launch_opts opts;
	struct helper
		child; /* its channel ends with a successful exec; otherwise its errno arrives */
	struct sd_event_source *exec, *timer;
	uint64_t deadline;
	struct sessions_listener listener;
	uint64_t begun_ns; /* CLOCK_MONOTONIC */
	bool stopped;	   /* by SIGSTOP, during an attempt */
	bool attached;
	bool signalled; /* launch_signal() was called, so the child will probably end */
};

static void run_child(struct helper_side *side)
{
	const struct launch_opts *opts = side->ctx;
	int err;

	/* restore what the daemon changed */
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, opts->sigmask, NULL);
	setrlimit(RLIMIT_NOFILE, opts->files);
	unsetenv("NOTIFY_SOCKET");
	execvp(opts->argv[0], opts->argv);
	err = errno;
	if (write(side->chan, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

/* --- end of the attempts --- */

static void let_continue(struct launch *l)
{
	if (l->stopped)
		kill(l->child.pid, SIGCONT);
	l->stopped = false;
}

static void stop_attempts(struct launch *l)
{
	let_continue(l);
	sessions_unlisten(l->opts.sessions, &l->listener);
	l->exec = sd_event_source_disable_unref(l->exec);
	l->timer = sd_event_source_disable_unref(l->timer);
}

void launch_cancel(struct launch *l)
{
	stop_attempts(l);
}

static void fail(struct launch *l, int err, const struct diag *diag)
{
	stop_attempts(l);
	launch_signal(l, SIGTERM);
	launch_signal(l, SIGCONT);
	l->opts.failed(l->opts.ctx, err, diag);
}

static void fail_untraceable(struct launch *l, const char *hint, const char *why)
{
	struct diag diag = {0};

	diag_set(&diag, -ENOEXEC, PYP_EXIT_UNTRACEABLE, hint, "cannot trace '%.100s': %.380s",
		 l->opts.argv[0], why);
	fail(l, -ENOEXEC, &diag);
}

/* --- attempts --- */

static bool has_ended(const struct launch *l, siginfo_t *info)
{
	info->si_pid = 0;
	return waitid(P_PID, (id_t)l->child.pid, info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info->si_pid;
}

/* Errors that may disappear a millisecond later, while libraries are still being mapped. A child
 * that is exiting has no executable shortly before waitid(2) reports its end. */
static bool worth_another_try(const struct diag *diag)
{
	return diag->exit == PYP_EXIT_UNTRACEABLE || diag->exit == PYP_EXIT_FAILURE ||
	       diag->exit == PYP_EXIT_NO_PROCESS;
}

static void fail_ended(struct launch *l)
{
	fail_untraceable(l, "check that it is a Python program", "it ended before running Python");
}

/* An attempt has failed. */
static void try_again(struct launch *l, int err, const struct diag *diag)
{
	siginfo_t info;
	uint64_t now;

	sd_event_now(sd_event_source_get_event(l->timer), CLOCK_MONOTONIC, &now);
	if (has_ended(l, &info)) { /* during the attempt */
		fail_ended(l);
	} else if (err == -ECANCELED || !worth_another_try(diag)) {
		fail(l, err, diag);
	} else if (now >= l->deadline) {
		fail_untraceable(l, "it was terminated; attach to the Python process with --pid",
				 diag->msg);
	} else {
		sd_event_source_set_time_relative(l->timer, TRY_US);
		sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
	}
}

/* Called for each attempt, and again while one is in progress: the child is stopped until its end. */
static int on_try(struct sd_event_source *source, uint64_t usec, void *userdata)
{
	struct launch *l = userdata;
	struct diag diag = {0};
	siginfo_t info;
	int r;

	(void)source, (void)usec;
	if (has_ended(l, &info)) {
		fail_ended(l);
		return 0;
	}
	if (!l->stopped)
		kill(l->child.pid, SIGSTOP);
	l->stopped = true;
	r = sessions_look_stopped(l->opts.sessions, l->child.pid, l->begun_ns, &diag);
	if (r == -EINPROGRESS)
		return 0;
	if (r == 0)
		r = sessions_attach(l->opts.sessions, l->child.pid, l->opts.start, NULL, &diag);
	let_continue(l);
	if (r < 0) {
		try_again(l, r, &diag);
		return 0;
	}
	stop_attempts(l);
	l->attached = true;
	l->opts.attached(l->opts.ctx);
	return 0;
}

/* An attempt has come further. */
static void on_looked(void *ctx)
{
	struct launch *l = ctx;

	if (!l->timer || !l->stopped)
		return;
	(void)sd_event_source_set_time_relative(l->timer, 0);
	(void)sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
}

static int begin_tries(struct launch *l, struct sd_event *event)
{
	uint64_t now;
	int r;

	r = sd_event_now(event, CLOCK_MONOTONIC, &now);
	if (r < 0)
		return r;
	l->deadline = now + DEADLINE_US;
	r = sd_event_add_time(event, &l->timer, CLOCK_MONOTONIC, now, 1, on_try, l);
	return r < 0 ? r : 0;
}

static int on_exec(struct sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct sd_event *event = sd_event_source_get_event(source);
	struct launch *l = userdata;
	struct diag diag = {0};
	int err = 0, r;

	(void)fd, (void)revents;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	if (helper_read(&l->child, &err, sizeof(err)) == 0) {
		diag_set(&diag, -err, PYP_EXIT_FAILURE, "check the command",
			 "cannot run '%.200s': %s", l->opts.argv[0], strerror(err));
		fail(l, -err, &diag);
		return 0;
	}
	r = begin_tries(l, event);
	if (r < 0)
		fail(l, r, &diag);
	return 0;
}

/* --- start and end --- */

int launch_start(struct sd_event *event, const struct launch_opts *opts, struct launch **ret,
		 struct diag *diag)
{
	_cleanup_(launch_freep) struct launch *l = NULL;
	const struct helper_opts ho = {.flags = HELPER_EXECS | HELPER_STAYS};
	int r;

	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->opts = *opts;
	l->child = HELPER_NONE;
	l->begun_ns = clock_monotonic_ns();
	l->listener = (struct sessions_listener){.looked = on_looked, .ctx = l};
	sessions_listen(opts->sessions, &l->listener);
	r = helper_start(&ho, run_child, &l->opts, &l->child);
	if (r == 0)
		r = sd_event_add_io(event, &l->exec, l->child.fd, EPOLLIN, on_exec, l);
	if (r < 0)
		return diag_errno(diag, -r, "cannot start the command");
	*ret = TAKE_PTR(l);
	return 0;
}

pid_t launch_pid(const struct launch *l)
{
	return l->child.pid;
}

void launch_signal(struct launch *l, int signo)
{
	/* only launch_free() reaps the child, so the pid is valid until then */
	kill(l->child.pid, signo);
	l->signalled = true;
}

static void wait_end(const struct launch *l, int ms)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, l->child.pid, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	if (pidfd >= 0)
		(void)poll(&p, 1, ms);
}

int launch_status(const struct launch *l)
{
	siginfo_t info;

	if (l->signalled)
		wait_end(l, LAUNCH_END_MS);
	if (!has_ended(l, &info))
		return 0;
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static void log_end(const struct launch *l, const siginfo_t *info)
{
	const char *name = l->opts.argv[0];

	if (info->si_code != CLD_EXITED)
		log_warning("'%.200s' (pid %d) was ended by signal %d (%s)", name, l->child.pid,
			    info->si_status, strsignal(info->si_status));
	else if (info->si_status != 0)
		log_warning("'%.200s' (pid %d) ended with status %d", name, l->child.pid,
			    info->si_status);
	else
		log_info("'%.200s' (pid %d) ended with status 0", name, l->child.pid);
}

void launch_free(struct launch *l)
{
	siginfo_t info;

	if (!l)
		return;
	if (l->child.pid > 0 && has_ended(l, &info)) {
		if (l->attached)
			log_end(l, &info);
		waitpid(l->child.pid, NULL, WNOHANG);
	} else if (l->child.pid > 0 && !l->signalled) {
		log_warning("'%.200s' (pid %d) continues to run", l->opts.argv[0], l->child.pid);
	}
	stop_attempts(l);
	closep(&l->child.fd);
	free(l);
}
