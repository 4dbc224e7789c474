// SPDX-License-Identifier: BSD-2-Clause
/*
 * The process that holds the probes: see holder.h.
 *
 * Each attachment has a socket pair. The owner's end represents the attachment. The holder's end
 * belongs to a thread that attaches, answers with 0 or a negative errno, waits for the end of the
 * stream and detaches. It then closes its end, which notifies the owner. The owner's death ends the
 * stream, too.
 */
#include "probe/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/helper.h"
#include "base/priority.h"
#include "probe/uprobe_event.h"
#include "probe/uprobe_multi.h"
#include "target/deadline.h"
#include "pyprof/bpf_abi.h"

#define STACK_BYTES (256u << 10)

enum what { HOLD_LINK, HOLD_EVENT, FIND_TRACERS };

/*
 * A request, sent with three descriptors: the program's (or any other), the probed file's, and the
 * holder's end of the pair. The file is not sent as a path, because a lookup below /proc/PID can
 * block while that process is stuck in an exec.
 */
struct message {
	uint32_t what, has_cookies, n;
	pid_t pid;
	uint64_t offsets[PYP_ALL_SITES], cookies[PYP_ALL_SITES];
	char name[64]; /* of the event */
};

struct job {
	struct message m;
	int prog_fd, file, end;
	char path[32]; /* of the file, for the kernel's lookup in this process */
};

/* ---- in the holder ----------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int jobs; /* number of running threads */
} holder = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void count_jobs(int by)
{
	pthread_mutex_lock(&holder.lock);
	holder.jobs += (unsigned int)by;
	pthread_cond_signal(&holder.changed);
	pthread_mutex_unlock(&holder.lock);
}

struct held {
	int link; /* -1: none */
	uint32_t id;
	struct uprobe_event event;
};

static int attach(const struct job *j, struct held *ret)
{
	const struct message *m = &j->m;

	if (m->what == HOLD_EVENT)
		return uprobe_event_open(&(struct uprobe_event_opts){.prog_fd = j->prog_fd,
								     .name = m->name,
								     .path = j->path,
								     .offsets = m->offsets,
								     .n = m->n,
								     .pid = m->pid},
					 &ret->event);
	ret->link = uprobe_multi_link(&(struct uprobe_multi_opts){
		.prog_fd = j->prog_fd,
		.path = j->path,
		.offsets = m->offsets,
		.cookies = m->has_cookies ? m->cookies : NULL,
		.n = m->n,
		.pid = m->pid,
	});
	if (ret->link < 0)
		return ret->link;
	tracers_add_own(ret->link, &ret->id);
	return 0;
}

static void detach(struct held *h)
{
	if (h->link >= 0)
		close(h->link);
	else
		uprobe_event_close(&h->event);
	tracers_drop_own(h->id);
}

struct found {
	int32_t result;
	struct tracers tracers;
};

static void find(const struct job *j)
{
	struct found f = {0};

	f.result = tracers_find(
		&(struct tracers_of){
			.pid = j->m.pid, .path = j->path, .offsets = j->m.offsets, .n = j->m.n},
		&f.tracers);
	(void)send(j->end, &f, sizeof(f), MSG_NOSIGNAL);
}

static void wait_for_end(int fd)
{
	char c;
	ssize_t n;

	do
		n = read(fd, &c, 1);
	while (n > 0 || (n < 0 && errno == EINTR));
}

static void hold(struct job *j)
{
	struct held h = {.link = -1};
	int32_t answer;

	priority_raise();
	answer = attach(j, &h);

	close(TAKE_FD(j->prog_fd));
	close(TAKE_FD(j->file));
	(void)send(j->end, &answer, sizeof(answer), MSG_NOSIGNAL);
	if (answer < 0)
		return;
	wait_for_end(j->end);
	detach(&h);
}

static void job_end(struct job *j)
{
	closep(&j->prog_fd);
	closep(&j->file);
	close(j->end);
	free(j);
	count_jobs(-1);
}

static void *job_main(void *arg)
{
	struct job *j = arg;

	if (j->m.what == FIND_TRACERS)
		find(j);
	else
		hold(j);
	job_end(j);
	return NULL;
}

static void job_spawn(struct job *j)
{
	int32_t answer = -EAGAIN;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	count_jobs(1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, job_main, j);
	pthread_attr_destroy(&attr);
	if (!err)
		return;
	(void)send(j->end, &answer, sizeof(answer), MSG_NOSIGNAL);
	job_end(j);
}

#define DESCRIPTORS 3

/* Returns 0 and a job; -1 if the owner has ended. */
static int receive(int requests, struct job *j)
{
	int fds[DESCRIPTORS_SENT];

	if (descriptors_receive(requests, &j->m, sizeof(j->m), fds) != DESCRIPTORS)
		return -1;
	j->prog_fd = fds[0];
	j->file = fds[1];
	j->end = fds[2];
	snprintf(j->path, sizeof(j->path), "/proc/self/fd/%d", j->file);
	return 0;
}

static void holder_run(struct helper_side *side)
{
	struct job *j = NULL;

	deadline_here();
	while ((j = calloc(1, sizeof(*j))) && receive(side->chan, j) == 0)
		job_spawn(j);
	/* This ends the streams of all attachments, which detaches them. */
	close(side->chan);
	pthread_mutex_lock(&holder.lock);
	while (holder.jobs)
		pthread_cond_wait(&holder.changed, &holder.lock);
}

/* ---- in the owner ------------------------------------------------------------------------ */

static struct {
	pid_t owner; /* a forked process needs its own holder */
	struct helper process;
} mine = {.process = {.fd = -1}};

static bool is_running(void)
{
	struct pollfd p = {.fd = mine.process.fd, .events = 0};

	return mine.process.fd >= 0 && mine.owner == getpid() && poll(&p, 1, 0) == 0;
}

/*
 * In a forked process, the descriptor belongs to the parent; its number may denote another file
 * here.
 */
static void forget_mine(void)
{
	if (mine.owner == getpid())
		helper_leave(&mine.process);
	mine.process = HELPER_NONE;
	mine.owner = 0;
}

int holder_start(void)
{
	const struct helper_opts ho = {.name = TRACERS_HOLDER,
				       .flags = HELPER_PACKETS | HELPER_SESSION | HELPER_STAYS};
	int r;

	if (is_running())
		return 0;
	forget_mine();
	r = helper_start(&ho, holder_run, NULL, &mine.process);
	if (r < 0)
		return r;
	mine.owner = getpid();
	/* A request waits for room. */
	return fcntl(mine.process.fd, F_SETFL, 0) < 0 ? -errno : 0;
}

static int fill(struct message *m, const uint64_t *offsets, uint32_t n, pid_t pid)
{
	if (n > PYP_ALL_SITES)
		return -EINVAL;
	*m = (struct message){.n = n, .pid = pid};
	memcpy(m->offsets, offsets, n * sizeof(*offsets));
	return 0;
}

/* Wait for the exit, because the init process of many containers does not reap zombies. */
#define END_LIMIT_MS 2000

void holder_end(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	if (mine.process.fd < 0 || mine.owner != getpid())
		return;
	close(TAKE_FD(mine.process.fd));
	for (int i = 0; i < END_LIMIT_MS && waitpid(mine.process.pid, NULL, WNOHANG) == 0; i++)
		(void)nanosleep(&pause, NULL);
	mine.process = HELPER_NONE;
	mine.owner = 0;
}

__attribute__((destructor)) static void end_at_exit(void)
{
	holder_end();
}

/* prog_fd -1: none; another descriptor is sent in its place, because a request has three. */
static int send_request(struct message *m, int prog_fd, int file, int end)
{
	const int fds[DESCRIPTORS] = {prog_fd < 0 ? end : prog_fd, file, end};

	return descriptors_send(mine.process.fd, m, sizeof(*m), fds, DESCRIPTORS);
}

/* Signals that arrive meanwhile are handled or blocked, and the wait continues. */
static bool is_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int r;

	do
		r = poll(&p, 1, ms);
	while (r < 0 && errno == EINTR);
	return r > 0;
}

struct question {
	struct message m;
	int prog_fd, file; /* the arguments of send_request */
	int limit_ms;
};

/*
 * Sends the request and reads an answer of `size` bytes. Returns this side's end of the stream or
 * -errno.
 */
static int ask(struct question *q, void *answer, size_t size)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	int ends[2], err = holder_start();

	if (err)
		return err;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	ours = ends[0];
	theirs = ends[1];
	err = send_request(&q->m, q->prog_fd, q->file, theirs);
	if (err)
		return err;
	close(TAKE_FD(theirs));
	if (!is_readable(ours, q->limit_ms))
		return -ETIMEDOUT;
	return recv(ours, answer, size, 0) == (ssize_t)size ? TAKE_FD(ours) : -EPIPE;
}

int holder_attach(const struct holder_request *r)
{
	_cleanup_close_ int ours = -1;
	struct question q = {.prog_fd = r->prog_fd, .file = r->file, .limit_ms = HOLDER_LIMIT_MS};
	int32_t answer = -EPIPE;
	int err = fill(&q.m, r->offsets, r->n, r->pid);

	if (err)
		return err;
	q.m.what = r->event ? HOLD_EVENT : HOLD_LINK;
	q.m.has_cookies = r->cookies != NULL;
	if (r->cookies)
		memcpy(q.m.cookies, r->cookies, r->n * sizeof(*r->cookies));
	err = r->event ? uprobe_event_name(q.m.name) : 0;
	if (err)
		return err;
	ours = ask(&q, &answer, sizeof(answer));
	if (ours < 0)
		return ours;
	return answer < 0 ? answer : TAKE_FD(ours);
}

int holder_find_tracers(const struct tracers_of *of, int file, struct tracers *ret)
{
	_cleanup_close_ int ours = -1;
	struct question q = {.prog_fd = -1, .file = file, .limit_ms = HOLDER_FIND_MS};
	struct found f = {.result = -EPIPE};
	int err = fill(&q.m, of->offsets, of->n, of->pid);

	if (err)
		return err;
	q.m.what = FIND_TRACERS;
	ours = ask(&q, &f, sizeof(f));
	if (ours < 0)
		return ours;
	*ret = f.tracers;
	return f.result;
}

void holder_release_begin(int hold)
{
	(void)shutdown(hold, SHUT_WR);
}

bool holder_released(int hold)
{
	return is_readable(hold, 0);
}

bool holder_released_until(int hold, uint64_t until_ns)
{
	uint64_t now = clock_monotonic_ns();
	uint64_t ms = until_ns > now ? (until_ns - now) / 1000000 : 0;

	if (!until_ns || ms > HOLDER_LIMIT_MS)
		ms = HOLDER_LIMIT_MS;
	return is_readable(hold, (int)ms);
}

void holder_release(int *hold)
{
	if (*hold < 0)
		return;
	holder_release_begin(*hold);
	(void)is_readable(*hold, HOLDER_LIMIT_MS);
	close(TAKE_FD(*hold));
}

bool holder_lost(int hold)
{
	return is_readable(hold, 0);
}
