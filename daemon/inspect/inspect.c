// SPDX-License-Identifier: BSD-2-Clause
/* The daemon's side of an inspector: see inspect.h. Only the functions documented there as waiting
 * block. */
#include "inspect/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stall_timeout.h"
#include "base/reaper.h"
#include "inspect/answer.h"
#include "inspect/helper.h"
#include "target/proc.h"
#include "target/refusal.h"

#define STUCK_MAX      16u  /* processes that could not be ended: then no more are started */
#define RESTARTS_MAX   3u   /* of an inspector that was killed */
#define CENSUS_WAIT_MS 2000 /* it pauses while the target collects garbage */

uint64_t inspect_limit_ns = UINT64_C(10000000000);

struct inspect {
	struct helper inspector, opener;
	struct inspect_job *job; /* owned */
	int pidfd;		 /* the target's; -1: none */
	unsigned int restarts;
	bool can_return; /* a new inspector can answer questions without finding all again */
	bool returning;	 /* it has been started, and has not compared the target with the job yet */
	pid_t tid;	 /* 0: inspecting a file */
	char *path;
	uint64_t deadline_ns;
	uint32_t seq;	  /* of the latest question */
	bool found, gone; /* the result was delivered; the inspector is unusable */
	bool asked;	  /* the latest question is unanswered */
	bool patient;
	uint64_t late;
	/* The answer being received */
	struct answer_head head;
	size_t have; /* bytes received, header included */
	char *content;
	size_t room;
};

/* ---- the channel ------------------------------------------------------------------------- */

bool channel_write(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return false;
		p += w;
		n -= (size_t)w;
	}
	return true;
}

bool channel_read(int fd, void *data, size_t n)
{
	char *p = data;

	while (n) {
		ssize_t r = read(fd, p, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		p += r;
		n -= (size_t)r;
	}
	return true;
}

/* Grow with the bytes received, not with the announced size. */
static int make_room(struct inspect *in, size_t want)
{
	size_t room = in->room ? in->room : 4096;
	char *p;

	if (want <= in->room)
		return 0;
	while (room < want)
		room *= 2;
	p = realloc(in->content, room);
	if (!p)
		return -ENOMEM;
	in->content = p;
	in->room = room;
	return 0;
}

static bool head_is_possible(const struct inspect *in)
{
	const struct answer_head *h = &in->head;

	return h->seq == in->seq && h->question < QUESTIONS &&
	       h->size <= answer_max((enum question)h->question) && h->err <= 0 && h->err > -4096 &&
	       h->err != -EINPROGRESS && (!h->err || !h->size || h->question == QUESTION_FIND);
}

/* Receive available data. 0: an answer is complete; -EINPROGRESS: not yet; -EPROTO, -EPIPE,
 * -ENOMEM. */
static int take(struct inspect *in)
{
	for (;;) {
		size_t head = sizeof(in->head), size, want;
		ssize_t r;
		char *to;

		if (in->have >= head && !head_is_possible(in))
			return -EPROTO;
		size = in->have < head ? 0 : in->head.size;
		want = in->have < head ? head - in->have : head + size - in->have;
		if (in->have >= head && !want)
			return 0;
		if (in->have >= head) {
			want = want < 65536 ? want : 65536;
			if (make_room(in, in->have - head + want) < 0)
				return -ENOMEM;
			to = in->content + (in->have - head);
		} else {
			to = (char *)&in->head + in->have;
		}
		r = recv(in->inspector.fd, to, want, MSG_DONTWAIT);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return -EINPROGRESS;
		if (r <= 0)
			return -EPIPE;
		in->have += (size_t)r;
	}
}

static void answered(struct inspect *in)
{
	in->have = 0;
	in->asked = false;
}

/* Wait up to ms for data. */
static void wait_for(const struct inspect *in, int ms)
{
	struct pollfd p = {.fd = in->inspector.fd, .events = POLLIN};

	(void)poll(&p, 1, ms);
}

/* ---- start and end ----------------------------------------------------------------------- */

/* No address of the daemon may get into the job. */
static int fill_job(struct inspect_job *job, const struct inspect_opts *opts)
{
	if (opts->path && strlen(opts->path) >= sizeof(job->path))
		return -ENAMETOOLONG;
	job->plan = opts->plan;
	job->breaks = opts->breaks;
	job->check = opts->check;
	job->details = opts->details;
	job->has_target = opts->target;
	if (opts->target)
		job->target = *opts->target;
	job->target.access = NULL;
	if (opts->path)
		memcpy(job->path, opts->path, strlen(opts->path) + 1);
	job->has_like = opts->like;
	job->like_exec_id = opts->like_exec_id;
	if (opts->like) {
		job->like = *opts->like;
		python_refined_get(&opts->like->layout, job->refined);
		job->like.image = NULL;
		job->like.layout.tag = NULL;
	}
	job->test_helper = helper_number_of((void (*)(void))inspect_test_helper);
	return 0;
}

static int launch(struct inspect *in)
{
	const struct inspect_job *job = in->job;

	struct helper_opts inspector = {.name = "pyprofd-inspect", .nfds = 2},
			   opener = {.name = "pyprofd-open", .nfds = 2};
	int ask[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ask) < 0)
		return -errno;
	opener.fds[INSPECT_ASK] = ask[1];
	inspector.fds[INSPECT_ASK] = ask[0];
	opener.fds[INSPECT_PIDFD] = inspector.fds[INSPECT_PIDFD] = in->pidfd;
	r = helper_start_anew(&opener, opener_run, job, sizeof(*job), &in->opener);
	if (r == 0)
		r = helper_start_anew(&inspector, inspector_run, job, sizeof(*job), &in->inspector);
	(void)close(ask[0]);
	(void)close(ask[1]);
	return r;
}

int inspect_start(const struct inspect_opts *opts, struct inspect **ret, struct diag *diag)
{
	_cleanup_(inspect_freep) struct inspect *in = calloc(1, sizeof(*in));
	int r;

	if (!in)
		return diag_errno(diag, ENOMEM, "cannot inspect the target");
	in->inspector = in->opener = HELPER_NONE;
	in->pidfd = -1;
	in->job = calloc(1, sizeof(*in->job));
	if (!in->job)
		return diag_errno(diag, ENOMEM, "cannot inspect the target");
	r = reaper_check(STUCK_MAX, diag);
	if (r < 0)
		return r;
	in->tid = opts->target ? opts->target->tid : 0;
	in->patient = opts->patient;
	in->path = opts->path ? strdup(opts->path) : NULL;
	in->asked = true;
	in->deadline_ns = clock_monotonic_ns() + inspect_limit_ns;
	r = fill_job(in->job, opts);
	if (r == 0 && opts->target) {
		in->pidfd = fcntl(opts->target->pidfd, F_DUPFD_CLOEXEC, 3);
		r = in->pidfd < 0 ? -errno : 0;
	}
	if (r == 0)
		r = launch(in);
	if (r < 0)
		return diag_errno(diag, -r, "cannot start a helper process");
	*ret = TAKE_PTR(in);
	return 0;
}

void inspect_free(struct inspect *in)
{
	if (!in)
		return;
	helper_end(&in->inspector);
	helper_end(&in->opener);
	closep(&in->pidfd);
	free(in->job);
	free(in->path);
	free(in->content);
	free(in);
}

int inspect_fd(const struct inspect *in)
{
	return in->inspector.fd;
}

uint64_t inspect_deadline(const struct inspect *in)
{
	return in->deadline_ns;
}

uint64_t inspect_late(const struct inspect *in)
{
	return in ? in->late : 0;
}

/* ---- the result -------------------------------------------------------------------------- */

static int too_late(struct diag *diag)
{
	return diag_set(diag, -ETIMEDOUT, PYP_EXIT_FAILURE,
			"check whether it maps files of a file system that does not respond",
			"reading the target's files and memory took more than %g seconds",
			(double)inspect_limit_ns / 1e9);
}

/* A signal that a program gets for its own errors */
static bool is_crash(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGILL ||
	       signal == SIGFPE;
}

/*
 * Starts an inspector that was killed, by whomever, again: other than by a crash, that says nothing
 * about the target. Returns false if it is not started.
 */
static bool restart(struct inspect *in)
{
	struct helper inspector = in->inspector, opener = in->opener;
	const int signal = helper_killed_by(&inspector);
	char ending[HELPER_ENDING];
	int r;

	if (!signal || is_crash(signal) || in->restarts == RESTARTS_MAX)
		return false;
	in->restarts++;
	log_warning("process %d: the process that inspects it %s; it is started again",
		    (int)in->tid, helper_ending(&inspector, ending));
	/* before the old ones are closed, so that no descriptor gets the same number */
	in->inspector = in->opener = HELPER_NONE;
	r = launch(in);
	helper_end(&inspector);
	helper_end(&opener);
	in->seq = 0;
	in->have = 0;
	return r == 0;
}

/* What it found is in the job of the next one, which only has to compare the target with it. */
static void prepare_return(struct inspect *in, const struct inspect_result *found)
{
	struct inspect_job *job = in->job;

	in->can_return = found->exec_id && !job->details && in->tid;
	if (!in->can_return || found->same)
		return;
	job->like = *found->python;
	python_refined_get(&found->python->layout, job->refined);
	job->like.layout.tag = NULL;
	job->has_like = true;
	job->like_exec_id = found->exec_id;
	job->plan = job->breaks = job->check = false;
}

static int broken(const struct inspect *in, int err, struct diag *diag)
{
	char ending[HELPER_ENDING];

	if (err == -EPROTO)
		return diag_set(diag, err, PYP_EXIT_UNTRACEABLE,
				"the target's files may be damaged or malicious",
				"the process that inspects the target sent an invalid "
				"answer");
	if (err == -EPIPE && is_crash(helper_killed_by(&in->inspector)))
		return diag_set(diag, err, PYP_EXIT_UNTRACEABLE,
				"the target's files may be damaged or malicious",
				"the process that inspects the target %s",
				helper_ending(&in->inspector, ending));
	if (err == -EPIPE)
		return diag_set(diag, err, PYP_EXIT_FAILURE, "try again",
				"the process that inspects the target %s",
				helper_ending(&in->inspector, ending));
	return diag_errno(diag, -err, "cannot inspect the target");
}

int inspect_poll(struct inspect *in, struct inspect_result *ret, struct diag *diag)
{
	int r = in->found || in->gone ? -EPIPE : take(in);

	if (r == -EPIPE && !in->found && !in->gone && restart(in))
		r = -EINPROGRESS;
	if (r == -EINPROGRESS && clock_monotonic_ns() < in->deadline_ns)
		return r;
	if (r == 0 && in->head.question != QUESTION_FIND)
		r = -EPROTO;
	if (r == 0) {
		r = answer_decode_find(in->content, in->head.size, in->tid, in->path, ret, diag);
		answered(in);
		if (r == -EPERM && in->tid > 0)
			r = refusal_explain(in->tid, refusal_scope(), diag);
	} else {
		r = r == -EINPROGRESS ? too_late(diag) : broken(in, r, diag);
	}
	if (r == 0)
		prepare_return(in, ret);
	in->found = r == 0;
	in->gone = r < 0;
	return r;
}

int inspect_wait(struct inspect *in, int ms, struct inspect_result *ret, struct diag *diag)
{
	uint64_t end = ms < 0 ? in->deadline_ns
			      : clock_monotonic_ns() + (uint64_t)ms * UINT64_C(1000000);

	for (;;) {
		uint64_t now;
		int r = inspect_poll(in, ret, diag);

		now = clock_monotonic_ns();
		if (r != -EINPROGRESS || (ms >= 0 && now >= end))
			return r;
		/* rounded up, to avoid polling shortly before the deadline */
		wait_for(in, end > now ? (int)((end - now) / 1000000) + 1 : 1);
	}
}

int inspect_open(const struct inspect_opts *opts, struct inspect **ret_inspect,
		 struct inspect_result *ret, struct diag *diag)
{
	_cleanup_(inspect_freep) struct inspect *in = NULL;
	char exe[32];
	int r = target_check_native(opts->target, diag);

	snprintf(exe, sizeof(exe), "/proc/%d/exe", opts->target->tid);
	if (r == 0)
		r = target_check_mount(opts->target, exe, diag);
	if (r == 0)
		r = inspect_start(opts, &in, diag);
	if (r == 0)
		r = inspect_wait(in, -1, ret, diag);
	if (r < 0)
		return r;
	r = target_check_mount(opts->target, ret->python->via, diag);
	if (r < 0) {
		inspect_result_deinit(ret);
		return r;
	}
	*ret_inspect = TAKE_PTR(in);
	return 0;
}

int inspect_once(const struct inspect_opts *opts, struct inspect_result *ret, struct diag *diag)
{
	_cleanup_(inspect_freep) struct inspect *in = NULL;
	int r = inspect_start(opts, &in, diag);

	return r < 0 ? r : inspect_wait(in, -1, ret, diag);
}

/* ---- questions --------------------------------------------------------------------------- */

static bool begin_return(struct inspect *in)
{
	if (!in->can_return || in->returning || !restart(in))
		return false;
	in->returning = in->asked = true;
	in->gone = false;
	in->deadline_ns = clock_monotonic_ns() + inspect_limit_ns;
	return true;
}

/* The new inspector can be asked if the target is still the same. -EBUSY: not known yet. */
static int await_return(struct inspect *in)
{
	_cleanup_(inspect_result_deinit) struct inspect_result found = {0};
	int r = take(in);

	if (r == -EINPROGRESS && clock_monotonic_ns() < in->deadline_ns)
		return -EBUSY;
	if (r == 0)
		r = answer_decode_find(in->content, in->head.size, in->tid, in->path, &found, NULL);
	answered(in);
	in->returning = false;
	in->gone = r < 0 || !found.same;
	return in->gone ? -ENOTCONN : 0;
}

/* Drop an answer that came after its timeout. */
static int clear_channel(struct inspect *in)
{
	int r = in->asked ? take(in) : 0;

	if (r == -EINPROGRESS)
		return -EBUSY;
	if (r == 0)
		answered(in);
	else
		in->gone = true;
	return r;
}

static int send_question(struct inspect *in, enum question what, uint64_t arg)
{
	const struct question_msg q = {.seq = ++in->seq, .question = (uint32_t)what, .arg = arg};

	/* The inspector has read all earlier questions, so the buffer has room. */
	if (send(in->inspector.fd, &q, sizeof(q), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(q)) {
		in->gone = true;
		return -EPIPE;
	}
	in->asked = true;
	return 0;
}

static bool process_runs(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return pid > 0 && proc_runs(path);
}

/* If so, the machine is busy, rather than the processes blocked. */
static bool is_running(const struct inspect *in)
{
	return process_runs(in->inspector.pid) || process_runs(in->opener.pid);
}

static int await_answer(struct inspect *in, enum question what)
{
	uint64_t now = clock_monotonic_ns();
	bool slow = in->patient || what == QUESTION_CENSUS || what == QUESTION_TASKS ||
		    what == QUESTION_GREENLETS;
	struct stall_timeout p = slow ? stall_timeout_new(now, CENSUS_WAIT_MS, INSPECT_CENSUS_MS)
				      : stall_timeout_new(now, INSPECT_WAIT_MS, INSPECT_RUN_MS);
	int r;

	while ((r = take(in)) == -EINPROGRESS) {
		now = clock_monotonic_ns();
		if (now >= p.next_ns && stall_timeout_expired(&p, now, is_running(in)))
			return -ETIMEDOUT;
		wait_for(in, (int)((p.next_ns - now) / 1000000) + 1);
	}
	if (r == 0 && in->head.question != (uint32_t)what)
		r = -EPROTO;
	if (r < 0) {
		in->gone = true;
		return r;
	}
	answered(in);
	return in->head.err;
}

/* The opener ends once everything is open. */
static void reap_opener(struct inspect *in)
{
	if (in->opener.pid > 0 && waitpid(in->opener.pid, NULL, WNOHANG) == in->opener.pid)
		in->opener.pid = 0;
}

/* Returns 0 if the answer is in in->content. */
static int ask(struct inspect *in, enum question what, uint64_t arg)
{
	int r;

	if (!in || !in->found || in->gone)
		return -ENOTCONN;
	reap_opener(in);
	r = in->returning ? await_return(in) : 0;
	if (r == 0)
		r = clear_channel(in);
	if (r == 0)
		r = send_question(in, what, arg);
	if (r == 0)
		r = await_answer(in, what);
	if (r == -EPIPE && begin_return(in))
		r = -EBUSY;
	/* other questions will be repeated */
	if ((r == -EBUSY || r == -ETIMEDOUT) && (what == QUESTION_STACKS || what == QUESTION_CODE))
		in->late++;
	return r;
}

/* After an invalid answer, do not use the inspector any more. */
static int checked(struct inspect *in, int r)
{
	if (r == -EPROTO)
		in->gone = true;
	return r;
}

static int ask_stacks(struct inspect *in, enum question what, pid_t pid, struct python_stack **ret,
		      size_t *n)
{
	int r = ask(in, what, 0);

	if (r == 0)
		r = checked(in, answer_decode_stacks(in->content, in->head.size, ret, n));
	if (r < 0)
		return r;
	r = python_stacks_check(*ret, *n, pid, NULL);
	if (r < 0) {
		python_stacks_free(TAKE_PTR(*ret), *n);
		*n = 0;
	}
	return r;
}

int inspect_stacks(struct inspect *in, pid_t pid, struct python_stack **ret, size_t *n)
{
	return ask_stacks(in, QUESTION_STACKS, pid, ret, n);
}

int inspect_dump(struct inspect *in, pid_t pid, struct python_stack **ret, size_t *n)
{
	return ask_stacks(in, QUESTION_DUMP, pid, ret, n);
}

int inspect_code(struct inspect *in, uint64_t code, struct code_names *ret)
{
	int r = ask(in, QUESTION_CODE, code);

	return r < 0 ? r : checked(in, answer_decode_code(in->content, in->head.size, ret));
}

int inspect_lines(struct inspect *in, uint64_t code, struct code_lines *ret)
{
	int r = ask(in, QUESTION_LINES, code);

	return r < 0 ? r : checked(in, answer_decode_lines(in->content, in->head.size, ret));
}

int inspect_hidden(struct inspect *in, bool *misses, char *out, size_t size)
{
	int r = ask(in, QUESTION_HIDDEN, 0);

	return r < 0 ? r
		     : checked(in,
			       answer_decode_hidden(in->content, in->head.size, misses, out, size));
}

int inspect_gils(struct inspect *in, struct pyp_gil_range ret[PYP_GIL_RANGES])
{
	int r = ask(in, QUESTION_GILS, 0);

	return r < 0 ? r : checked(in, answer_decode_gils(in->content, in->head.size, ret));
}

int inspect_census(struct inspect *in, struct census *ret)
{
	int r = ask(in, QUESTION_CENSUS, 0);

	return r < 0 ? r : checked(in, answer_decode_census(in->content, in->head.size, ret));
}

int inspect_names(struct inspect *in, struct python_names *ret)
{
	int r = ask(in, QUESTION_NAMES, 0);

	return r < 0 ? r : checked(in, answer_decode_names(in->content, in->head.size, ret));
}

int inspect_locals(struct inspect *in, uint64_t frame, struct python_locals *ret)
{
	int r = ask(in, QUESTION_LOCALS, frame);

	return r < 0 ? r : checked(in, answer_decode_locals(in->content, in->head.size, ret));
}

static int ask_tasks(struct inspect *in, enum question what, struct python_tasks *ret)
{
	int r = ask(in, what, 0);

	return r < 0 ? r : checked(in, answer_decode_tasks(in->content, in->head.size, ret));
}

int inspect_tasks(struct inspect *in, struct python_tasks *ret)
{
	return ask_tasks(in, QUESTION_TASKS, ret);
}

int inspect_greenlets(struct inspect *in, struct python_tasks *ret)
{
	return ask_tasks(in, QUESTION_GREENLETS, ret);
}

int inspect_exec_id(struct inspect *in, uint64_t *ret)
{
	int r = ask(in, QUESTION_EXEC_ID, 0);

	if (r == 0 && in->head.size != sizeof(*ret))
		r = checked(in, -EPROTO);
	if (r == 0)
		memcpy(ret, in->content, sizeof(*ret));
	return r;
}
