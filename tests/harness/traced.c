// SPDX-License-Identifier: BSD-2-Clause
/* Real targets: see traced.h. */
#include "harness/traced.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/caps.h"
#include "harness/patience.h"
#include "harness/place.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "python/layout.h"

#define ARGS_MAX 16
/*
 * How long the loop runs, or reads records, at once, in microseconds and ns: not until anything
 * must have happened
 */
#define STEP	 20000u
#define CATCH_UP 20000000u

double traced_seconds(void)
{
	struct timespec ts;

	assert_ok(clock_gettime(CLOCK_MONOTONIC, &ts));
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

double traced_cpu_seconds(const struct traced *t)
{
	double used = patience_cpu_s(t->pid);

	cr_assert(used >= 0, "the target has gone");
	return used;
}

/* The number of descriptors whose target begins with this. */
static unsigned int descriptors(const char *prefix)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	unsigned int n = 0;

	cr_assert(dir);
	while ((d = readdir(dir))) {
		char to[64] = "";

		if (readlinkat(dirfd(dir), d->d_name, to, sizeof(to) - 1) > 0)
			n += strncmp(to, prefix, strlen(prefix)) == 0;
	}
	closedir(dir);
	return n;
}

unsigned int traced_timers(void)
{
	return descriptors("anon_inode:[perf_event]");
}

unsigned int traced_bpf_objects(void)
{
	return descriptors("anon_inode:bpf");
}

size_t traced_interpreters(struct interpreter v[INTERPRETERS_MAX])
{
	size_t n, kept = 0;

	caps_require_bpf();
	n = interpreters_find(v);
	for (size_t i = 0; i < n; i++) {
		const struct layout *l = interpreter_layout(&v[i]);

		if (l && l->proven)
			v[kept++] = v[i];
	}
	cr_assert(kept > 0, "no interpreter here can be traced");
	return kept;
}

static bool has_no_library(const struct interpreter *it)
{
	return strcmp(it->file, it->exe) == 0;
}

size_t traced_few(struct interpreter v[INTERPRETERS_MAX])
{
	size_t n = traced_interpreters(v), middle = n / 2;

	if (n <= 3)
		return n;
	for (size_t i = n - 2; i > 0; i--)
		if (has_no_library(&v[i]))
			middle = i;
	v[1] = v[middle];
	v[2] = v[n - 1];
	return 3;
}

static unsigned int family_of(const struct interpreter *it)
{
	return 2 * (unsigned int)interpreter_layout(it)->model + !!it->abi;
}

size_t traced_in_turn(struct interpreter v[INTERPRETERS_MAX], unsigned int turn)
{
	struct interpreter all[INTERPRETERS_MAX];
	size_t n = traced_interpreters(all), kept = 0;

	if (getenv("PYPROF_TEST_ALL"))
		return traced_interpreters(v);
	for (size_t i = 0; i < n; i++) {
		unsigned int before = 0, members = 0;

		for (size_t k = 0; k < n; k++) {
			before += k < i && family_of(&all[k]) == family_of(&all[i]);
			members += family_of(&all[k]) == family_of(&all[i]);
		}
		if (before == turn % members)
			v[kept++] = all[i];
	}
	return kept;
}

struct interpreter traced_newest(void)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v);

	return v[n - 1];
}

const char *traced_path(const char *dir, const char *name, char *out, size_t size)
{
	const char *top = getenv("PYPROF_TOP");

	snprintf(out, size, "%s/%s/%s", top ? top : ".", dir, name);
	return out;
}

/* Starting --------------------------------------------------------------------------------- */

static const struct place *where;

void traced_place(const struct place *p)
{
	where = p;
}

/* Set up the environment here, so that run.py need not execute itself again to do so. */
static void same_start(void)
{
	setenv("PYTHONHASHSEED", "0", 1);
	setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
	unsetenv("PYTHONASYNCIODEBUG");
	unsetenv("PYTHONDEVMODE");
	unsetenv("PYTHONTRACEMALLOC");
	unsetenv("PYTHONWARNINGS");
}

static void child(const char *const *argv, int in, int out, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A child in its own pid namespace cannot see its parent's pid. */
	if (!where && getppid() != parent)
		_exit(126);
	dup2(in, 0);
	dup2(out, 1);
	/* Some of asyncio's calls depend on the handler of SIGINT. */
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	same_start();
	execv(argv[0], (char *const *)argv);
	_exit(127);
}

static int on_output(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct traced *t = ctx;
	ssize_t n;

	(void)revents;
	cr_assert(t->noutput < sizeof(t->output) - 1, "the target says too much");
	n = read(fd, t->output + t->noutput, sizeof(t->output) - 1 - t->noutput);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	t->at_eof = n <= 0;
	if (t->at_eof)
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	else
		t->noutput += (size_t)n;
	t->output[t->noutput] = '\0';
	return 0;
}

static void spawn(struct traced *t, const char *const *argv)
{
	int in[2], out[2];
	pid_t parent = getpid();

	/* Writing to a target that has died must not kill the test. */
	signal(SIGPIPE, SIG_IGN);
	assert_ok(pipe2(in, O_CLOEXEC));
	assert_ok(pipe2(out, O_CLOEXEC));
	t->pid = place_fork(where);
	cr_assert(t->pid >= 0);
	if (t->pid == 0)
		child(argv, in[0], out[1], parent);
	close(in[0]);
	close(out[1]);
	t->in = in[1];
	t->out = out[0];
	assert_ok(fcntl(t->out, F_SETFL, O_NONBLOCK));
}

static void start(struct traced *t, const char *exe, const char *script, va_list ap)
{
	const char *argv[ARGS_MAX + 3];
	char path[512];
	size_t n = 2;

	*t = (struct traced){.in = -1, .out = -1};
	argv[0] = exe;
	argv[1] = traced_path("tests/targets", script, path, sizeof(path));
	if (where && where->root)
		snprintf(path, sizeof(path), PLACE_TARGETS "/%s", script);
	while ((argv[n] = va_arg(ap, const char *)))
		cr_assert(++n < ARGS_MAX + 2);
	spawn(t, argv);
	cr_assert(sd_event_new(&t->event) >= 0);
	cr_assert(sd_event_add_io(t->event, &t->source, t->out, EPOLLIN, on_output, t) >= 0);
}

void traced_start(struct traced *t, const char *exe, const char *script, ...)
{
	va_list ap;

	va_start(ap, script);
	start(t, exe, script, ap);
	va_end(ap);
}

void traced_ready(struct traced *t, char pid[16], const char *exe, const char *script, ...)
{
	va_list ap;

	va_start(ap, script);
	start(t, exe, script, ap);
	va_end(ap);
	traced_expect(t, "ready");
	if (pid)
		snprintf(pid, 16, "%d", t->pid);
}

/* Waiting ---------------------------------------------------------------------------------- */

static void step(struct traced *t)
{
	cr_assert(sd_event_run(t->event, STEP) >= 0);
}

void traced_until(struct traced *t, traced_cond cond, void *ctx, const char *what)
{
	while (!cond(t, ctx)) {
		cr_assert(!patience_over(), "waited for %s; the target said \"%s\"", what,
			  t->output);
		step(t);
	}
}

struct clean {
	const struct sites *sites;
	pid_t child;
};

static bool is_clean(struct traced *t, void *ctx)
{
	const struct clean *c = ctx;

	(void)t;
	return sites_changed(c->sites, c->child) == 0 && sites_marked(c->sites, c->child) == 0;
}

void traced_until_clean(struct traced *t, const struct sites *sites, pid_t child)
{
	struct clean c = {.sites = sites, .child = child};

	traced_until(t, is_clean, &c, "the child to be rid of breakpoints");
}

static bool has_timers(struct traced *t, void *ctx)
{
	(void)t;
	return traced_timers() == *(unsigned int *)ctx;
}

void traced_until_timers(struct traced *t, unsigned int n)
{
	char what[32];

	snprintf(what, sizeof(what), "%u timers", n);
	traced_until(t, has_timers, &n, what);
}

static bool has_halted(struct traced *t, void *ctx)
{
	(void)ctx;
	return !sessions_stopping(t->sessions, 0);
}

void traced_halt(struct traced *t)
{
	struct diag diag = {0};

	assert_diag_ok(sessions_stop(t->sessions, 0, &diag), &diag);
	traced_until(t, has_halted, NULL, "the end of a stop");
}

struct work {
	double until; /* CPU time, seconds */
};

static bool has_worked(struct traced *t, void *ctx)
{
	const struct work *w = ctx;

	return traced_cpu_seconds(t) >= w->until;
}

void traced_work(struct traced *t, unsigned int cpu_ms)
{
	struct work w = {.until = traced_cpu_seconds(t) + cpu_ms / 1e3};

	traced_until(t, has_worked, &w, "the target's work");
}

static void keep_result(struct traced *t, const char *line)
{
	if (strncmp(line, "result ", 7) == 0)
		snprintf(t->result, sizeof(t->result), "%s", line + 7);
}

struct wanted {
	const char *word;
	bool prefix;
	char *line; /* the received line */
	size_t size;
	bool may_end, has_ended;
};

static bool fits(const struct wanted *w, const char *line)
{
	size_t n = strlen(w->word);

	return strncmp(line, w->word, n) == 0 && line[n] == (w->prefix ? ' ' : '\0');
}

/* Read lines until one matches. */
static bool has_printed(struct traced *t, void *ctx)
{
	struct wanted *w = ctx;
	char *end;

	while ((end = memchr(t->output, '\n', t->noutput))) {
		size_t n = (size_t)(end - t->output) + 1;
		bool found;

		*end = '\0';
		keep_result(t, t->output);
		snprintf(t->last, sizeof(t->last), "%.100s", t->output);
		found = fits(w, t->output);
		if (found && w->line)
			snprintf(w->line, w->size, "%s", t->output + strlen(w->word) + 1);
		memmove(t->output, t->output + n, t->noutput - n + 1);
		t->noutput -= n;
		if (found)
			return true;
	}
	w->has_ended = t->at_eof;
	if (w->has_ended && w->may_end)
		return true;
	cr_assert(!t->at_eof, "the target said \"%s\" and ended, not \"%s\"", t->last, w->word);
	return false;
}

void traced_expect(struct traced *t, const char *line)
{
	struct wanted w = {.word = line};

	traced_until(t, has_printed, &w, line);
}

bool traced_expect_or_end(struct traced *t, const char *line)
{
	struct wanted w = {.word = line, .may_end = true};

	traced_until(t, has_printed, &w, line);
	return !w.has_ended;
}

void traced_hear(struct traced *t, const char *line)
{
	struct pollfd p = {.fd = t->out, .events = POLLIN};
	struct wanted w = {.word = line};

	while (!has_printed(t, &w)) {
		cr_assert(poll(&p, 1, patience_left_ms()) == 1, "waited for %s", line);
		on_output(t->source, t->out, 0, t);
	}
}

const char *traced_answer(struct traced *t, const char *word)
{
	static char line[4096];
	struct wanted w = {.word = word, .prefix = true, .line = line, .size = sizeof(line)};

	traced_until(t, has_printed, &w, word);
	return line;
}

void traced_go(struct traced *t)
{
	traced_say(t, "");
}

void traced_say(struct traced *t, const char *words)
{
	cr_assert(dprintf(t->in, "%s\n", words) > 0, "the target has gone: %s", strerror(errno));
}

void traced_close(struct traced *t)
{
	if (t->in >= 0)
		close(t->in);
	t->in = -1;
}

/* Tracing ---------------------------------------------------------------------------------- */

static void on_end(void *ctx, pid_t pid)
{
	struct traced *t = ctx;

	(void)pid;
	t->ended++;
}

/* Run the loop while the target is being attached. */
static int look(struct traced *t, struct diag *diag)
{
	const struct target_opts opts = sessions_target_opts(t->sessions);
	int r;

	while ((r = t->observe
			    ? sessions_look(t->sessions, t->pid, &opts, 0, diag)
			    : sessions_look_stopped(t->sessions, t->pid, 0, diag)) == -EINPROGRESS)
		cr_assert(sd_event_run(t->event, UINT64_MAX) >= 0);
	return r;
}

static int try_attach(struct traced *t, bool verify, struct diag *diag)
{
	const struct session_opts opts = {
		.target = {.ring_bytes = t->ring_bytes ? t->ring_bytes : 32 << 20,
			   .verify = verify,
			   .mode = t->mode,
			   .builtins = t->builtins,
			   .follow = t->follow,
			   .max_overhead = t->max_overhead,
			   .asked = t->asked,
			   .stop_above = t->stop_above},
		.clock = SNAPSHOT_CPU,
		.max_children = t->max_children,
		.on_end = on_end,
		.ctx = t,
	};
	int r;

	if (!t->sessions)
		assert_diag_ok(sessions_new(t->event, &opts, &t->sessions, diag), diag);
	r = look(t, diag);
	return r < 0 ? r : sessions_attach(t->sessions, t->pid, !t->idle, NULL, diag);
}

int traced_try_attach(struct traced *t, struct diag *diag)
{
	return try_attach(t, false, diag);
}

void traced_attach_verified(struct traced *t)
{
	struct diag diag = {0};

	assert_diag_ok(try_attach(t, true, &diag), &diag);
}

void traced_attach(struct traced *t)
{
	struct diag diag = {0};

	assert_diag_ok(traced_try_attach(t, &diag), &diag);
}

static bool catch_up(struct traced *t, pid_t pid, uint64_t now)
{
	const uint64_t begun = clock_monotonic_ns();

	return sessions_catch_up(t->sessions, pid, now, begun + CATCH_UP);
}

struct snapshot *traced_snapshot(struct traced *t)
{
	return traced_snapshot_of(t, 0);
}

struct snapshot *traced_snapshot_of(struct traced *t, pid_t pid)
{
	uint64_t now = clock_monotonic_ns();
	struct snapshot *s = NULL;
	struct diag diag = {0};

	/* All records until now, and the cost of their probes. */
	while (!catch_up(t, pid, now))
		cr_assert(sd_event_run(t->event, 10000) >= 0);
	assert_diag_ok(sessions_snapshot(t->sessions, pid, &s, &diag), &diag);
	cr_assert(snapshot_valid(s));
	return s;
}

struct session_status traced_status(struct traced *t)
{
	struct session_status status;

	cr_assert(sessions_count(t->sessions) == 1);
	sessions_status(t->sessions, 0, &status);
	return status;
}

static bool is_zero(const char *label, const char *what, uint64_t n)
{
	if (n)
		fprintf(stderr, "  %s: %s %" PRIu64 ", not 0\n", label, what, n);
	return n == 0;
}

bool traced_is_exact(const struct snapshot *s, const char *label)
{
	bool ok = true;

	for (uint32_t i = 0; i < s->ntargets; i++) {
		const struct snapshot_target *t = &s->targets[i];

		ok &= is_zero(label, "unmatched", t->unmatched);
		ok &= is_zero(label, "resyncs", t->resyncs);
		ok &= is_zero(label, "truncated", t->truncated);
		ok &= is_zero(label, "decode_errors", t->decode_errors);
#define PYP_X(name, text)                                                                          \
	if (PYP_LOSS_##name != PYP_LOSS_fault_string &&                                            \
	    PYP_LOSS_##name != PYP_LOSS_samples_truncated)                                         \
		ok &= is_zero(label, #name, t->losses[PYP_LOSS_##name]);
		PYP_LOSSES(PYP_X)
#undef PYP_X
	}
	if (!snapshot_exact(s))
		fprintf(stderr, "  %s: the snapshot says it is not exact\n", label);
	return ok && snapshot_exact(s);
}

void traced_check_times(const struct snapshot *s)
{
	for (uint32_t k = 0; k < s->nthreads; k++)
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			uint64_t sum = 0;

			for (uint32_t i = 0; i < s->nnodes; i++)
				if (s->nodes[i].thread == k)
					sum += s->nodes[i].self[c];
			cr_assert_eq(sum, s->threads[k].total[c]);
		}
}

/* Ending ----------------------------------------------------------------------------------- */

struct ending {
	int status;
};

static bool has_ended(struct traced *t, void *ctx)
{
	struct ending *e = ctx;
	pid_t r = waitpid(t->pid, &e->status, WNOHANG);

	cr_assert(r >= 0, "waitpid: %s", strerror(errno));
	return r == t->pid;
}

int traced_wait(struct traced *t)
{
	struct ending e = {0};

	traced_until(t, has_ended, &e, "the target's end");
	t->pid = 0;
	return e.status;
}

void traced_stop(struct traced *t)
{
	if (t->pid > 0) {
		kill(t->pid, SIGKILL);
		waitpid(t->pid, NULL, 0);
	}
	sessions_free(t->sessions);
	sd_event_source_disable_unref(t->source);
	sd_event_unref(t->event);
	traced_close(t);
	if (t->out >= 0)
		close(t->out);
	*t = (struct traced){.in = -1, .out = -1};
}

void traced_finish(struct traced *t)
{
	int status;

	traced_close(t);
	status = traced_wait(t);
	cr_assert(status == 0, "the target ended with wait status %#x", (unsigned int)status);
	traced_stop(t);
}
