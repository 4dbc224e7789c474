// SPDX-License-Identifier: BSD-2-Clause
/* pyprofd and pyprofctl as processes: see daemon.h. */
#include "harness/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client.h"
#include "harness/patience.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"

#define ARGS_MAX 48

struct command {
	const char *program;
	const char *argv[ARGS_MAX + 1];
	int out, err;
	uid_t uid;
	gid_t gid; /* supplementary; 0: none */
	char **env;
	bool group; /* a process group of its own */
	const char *const *by;
};

/* Processes ---------------------------------------------------------------------------------- */

static void drop_privileges(uid_t uid, gid_t also)
{
	if (setgroups(also ? 1 : 0, &also) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
		_exit(125);
}

/* Execute the program c->by with the path as its last argument. */
static void exec_by(const struct command *c, const char *path)
{
	const char *argv[2 * ARGS_MAX];
	size_t n = 0;

	for (size_t i = 0; c->by[i] && n < ARGS_MAX - 1; i++)
		argv[n++] = c->by[i];
	argv[n++] = path;
	for (size_t i = 1; i <= ARGS_MAX && c->argv[i]; i++)
		argv[n++] = c->argv[i];
	argv[n] = NULL;
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static void child(const struct command *c, const char *path, int fd, pid_t parent)
{
	int in = open("/dev/null", O_RDONLY);

	if (c->group)
		setpgid(0, 0);
	dup2(in, 0);
	dup2(c->out, 1);
	dup2(c->err, 2);
	signal(SIGPIPE, SIG_DFL);
	if (c->uid)
		drop_privileges(c->uid, c->gid);
	/* After setuid(2), which resets it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(125);
	if (c->by)
		exec_by(c, path);
	/* Use the descriptor: another user may not have access to the directory. */
	execveat(fd, "", (char *const *)c->argv, c->env ? c->env : environ, AT_EMPTY_PATH);
	_exit(127);
}

static pid_t spawn(const struct command *c)
{
	const char *build = getenv("PYPROF_BUILD");
	_cleanup_close_ int fd = -1;
	pid_t parent = getpid(), pid;
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", build ? build : "build", c->program);
	fd = open(path, O_PATH | O_CLOEXEC);
	cr_assert(fd >= 0, "%s: %s", path, strerror(errno));
	pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0)
		child(c, path, fd, parent);
	if (c->group)
		setpgid(pid, pid);
	return pid;
}

/* Returns the exit status, or 128 + the signal. */
static int wait_end(pid_t pid, const char *what)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int status;

	cr_assert(fd >= 0, "%s: %s", what, strerror(errno));
	while (poll(&p, 1, patience_left_ms()) <= 0) {
		if (patience_over()) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			cr_assert_fail("%s did not end in time", what);
		}
	}
	cr_assert(waitpid(pid, &status, 0) == pid, "%s: %s", what, strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void collect(struct command *c, const char *program, const char *sock, va_list ap)
{
	size_t n = 0;

	c->program = program;
	c->argv[n++] = program;
	if (sock) {
		c->argv[n++] = "--socket";
		c->argv[n++] = sock;
	}
	while ((c->argv[n] = va_arg(ap, const char *)))
		cr_assert(++n < ARGS_MAX);
}

/* argv has room for at least max words and the NULL behind them. */
static void insert(const char **argv, size_t max, size_t at, const char *option)
{
	size_t n = 0;

	while (argv[n])
		n++;
	cr_assert(at <= n && n < max);
	memmove(&argv[at + 1], &argv[at], (n + 1 - at) * sizeof(*argv));
	argv[at] = option;
}

/* What the arguments say about how processes are observed */
enum way { WAY_UNSAID, WAY_TRACE, WAY_OTHER };

static enum way way_of(const char *const *arg)
{
	static const char *const others[] = {"--mode", "--max-overhead", "--exact", "--continuous"};
	enum way way = WAY_UNSAID;

	for (; *arg && strcmp(*arg, "--") != 0; arg++) {
		if (strcmp(*arg, "--mode") == 0 && arg[1] && strcmp(arg[1], "trace") == 0) {
			way = WAY_TRACE;
			continue;
		}
		for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
			if (strncmp(*arg, others[i], strlen(others[i])) == 0)
				return WAY_OTHER;
	}
	return way;
}

static bool is_among(const char *word, const char *const *words)
{
	while (*words && strcmp(*words, word) != 0)
		words++;
	return *words;
}

void ctl_add_options(const struct pyprofd *d, const char **argv, size_t max)
{
	static const char *const asking[] = {"attach", "record", "run", "slow", "timeline", NULL};
	static const char *const observing[] = {"attach", "record", "run", NULL};
	const char *command = argv[3]; /* after --socket */
	const enum way way = way_of(argv);

	if (d->defaults || !command || !is_among(command, asking))
		return;
	/* What is not said is up to the running daemon. */
	if (is_among(command, observing) &&
	    (way == WAY_TRACE ||
	     (way == WAY_UNSAID && (!d->pid || d->exact || strcmp(command, "run") == 0))))
		insert(argv, max, 4, "--exact");
	insert(argv, max, 4, "--yes");
}

static int create(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);

	cr_assert(fd >= 0, "%s: %s", path, strerror(errno));
	return fd;
}

/* Output ------------------------------------------------------------------------------------- */

static char *fd_text(int fd, size_t *ret_size)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text;

	cr_assert(size >= 0);
	text = calloc((size_t)size + 1, 1);
	cr_assert(text && pread(fd, text, (size_t)size, 0) == size);
	if (ret_size)
		*ret_size = (size_t)size;
	return text;
}

char *file_text(const char *path, size_t *ret_size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? NULL : fd_text(fd, ret_size);
}

void file_put_secret(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	cr_assert(f);
	fputs(text, f);
	fclose(f);
	assert_ok(chmod(path, 0400));
}

void ran_free(struct ran *r)
{
	free(r->out);
	free(r->err);
	free(r->forecast);
	*r = (struct ran){0};
}

static void check_sanitizers(const char *err)
{
	static const char *const reports[] = {"Sanitizer", "runtime error:"};

	for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++)
		cr_assert(!strstr(err, reports[i]), "a sanitizer says: %s", err);
}

static bool is_one_line(const char *s)
{
	const char *end = strchr(s, '\n');

	return end && end > s && end[1] == '\0';
}

static void check_failed(const struct ran *r, int status, const char *what, const char *program)
{
	cr_assert(r->status == status, "%s ended with %d, not %d: %s", program, r->status, status,
		  r->err);
	cr_assert(is_one_line(r->err), "%s said not one line but \"%s\"", program, r->err);
	cr_assert(strncmp(r->err, program, strlen(program)) == 0 && r->err[strlen(program)] == ':',
		  "it says \"%s\"", r->err);
	cr_assert(strstr(r->err, what), "\"%s\" is not in \"%s\"", what, r->err);
}

/* The daemon --------------------------------------------------------------------------------- */

const char *pyprofd_file(const struct pyprofd *d, const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s/%s", d->dir, name);
	return out;
}

void pyprofd_init(struct pyprofd *d)
{
	*d = (struct pyprofd){.dir = "/tmp/pyprof-e2e.XXXXXX"};
	temp_dir_make(d->dir);
	/* A daemon of another user must be able to create its socket here. */
	assert_ok(chmod(d->dir, 0777));
	pyprofd_file(d, "socket", d->sock, sizeof(d->sock));
	pyprofd_file(d, "stdout", d->out, sizeof(d->out));
	pyprofd_file(d, "stderr", d->err, sizeof(d->err));
}

static void launch(struct pyprofd *d, va_list ap)
{
	_cleanup_close_ int out = create(d->out), err = create(d->err);
	struct command c = {
		.out = out, .err = err, .uid = d->uid, .env = d->env, .group = true, .by = d->by};

	/* Become the parent of processes that the daemon leaves behind, to detect them. */
	assert_ok(prctl(PR_SET_CHILD_SUBREAPER, 1));
	cr_assert(d->pid == 0, "one is running");
	collect(&c, "pyprofd", d->sock, ap);
	d->exact = !d->defaults && way_of(c.argv) != WAY_OTHER;
	if (d->exact)
		insert(c.argv, ARGS_MAX, 3, "--exact");
	if (!d->defaults)
		insert(c.argv, ARGS_MAX, 3, "--yes");
	d->pid = spawn(&c);
}

void pyprofd_launch(struct pyprofd *d, ...)
{
	va_list ap;

	va_start(ap, d);
	launch(d, ap);
	va_end(ap);
}

void pyprofd_ready(struct pyprofd *d)
{
	struct ran r;

	for (;;) {
		siginfo_t info = {0};

		r = access(d->sock, F_OK) == 0 ? ctl(d, "ping", NULL) : (struct ran){.status = 6};
		if (r.status == 0)
			break;
		/* The daemon may still be attaching to the targets of --pid. */
		cr_assert(r.status == 6 || strstr(r.err, "did not answer"), "ping: %d, %s",
			  r.status, r.err);
		ran_free(&r);
		waitid(P_PID, (id_t)d->pid, &info, WEXITED | WNOHANG | WNOWAIT);
		cr_assert(info.si_pid == 0, "pyprofd has ended: %s", file_text(d->err, NULL));
		cr_assert(!patience_over(), "pyprofd is not ready: %s", file_text(d->err, NULL));
		patience_step();
	}
	ran_free(&r);
}

void pyprofd_start(struct pyprofd *d, ...)
{
	va_list ap;

	pyprofd_init(d);
	va_start(ap, d);
	launch(d, ap);
	va_end(ap);
	pyprofd_ready(d);
}

static void check_alone(pid_t group)
{
	while (kill(-group, 0) == 0) {
		waitpid(-group, NULL, WNOHANG);
		if (patience_over()) {
			kill(-group, SIGKILL);
			cr_assert_fail("pyprofd left a process behind");
		}
		patience_step();
	}
}

/* Returns whether this is a line of a forecast, which precedes attaching, or the overhead at the end. */
static bool is_forecast(const char *line, size_t n)
{
	static const char *const marks[] = {" · sample +",
					    ": no forecast: ",
					    " % (by samples, without probes)",
					    "warning: expected overhead",
					    " (--exact: no limit)",
					    ": expected overhead about "};

	if (strncmp(line, "overhead: ", 10) == 0)
		return true;
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (memmem(line, n, marks[i], strlen(marks[i])))
			return strncmp(line, "pyprofd: ", 9) == 0;
	return false;
}

/* Move the lines of the forecast from err to *ret_forecast, which may be NULL. */
static void take_forecast(char *err, char **ret_forecast)
{
	char *out = err, *forecast = strdup(""), *grown;

	for (char *line = err, *end; *line; line = end) {
		size_t n = strcspn(line, "\n");

		end = line + n + (line[n] != '\0');
		n = (size_t)(end - line);
		if (!is_forecast(line, n)) {
			memmove(out, line, n);
			out += n;
		} else if (asprintf(&grown, "%s%.*s", forecast, (int)n, line) >= 0) {
			free(forecast);
			forecast = grown;
		}
	}
	*out = '\0';
	if (ret_forecast)
		*ret_forecast = forecast;
	else
		free(forecast);
}

struct ran pyprofd_wait(struct pyprofd *d)
{
	struct ran r = {.status = wait_end(d->pid, "pyprofd")};

	check_alone(d->pid);
	d->pid = 0;
	r.out = file_text(d->out, &r.nout);
	r.err = file_text(d->err, NULL);
	check_sanitizers(r.err);
	take_forecast(r.err, NULL);
	return r;
}

void pyprofd_deinit(struct pyprofd *d)
{
	bool runs = d->pid, left = access(d->sock, F_OK) == 0;

	if (!d->dir[0])
		return;
	if (runs)
		kill(d->pid, SIGKILL);
	temp_dir_delete(d->dir);
	d->dir[0] = '\0';
	cr_assert(!runs, "pyprofd still runs");
	cr_assert(!left, "the socket is still there");
}

void pyprofd_end(struct pyprofd *d)
{
	struct ran r;

	if (d->pid) {
		kill(d->pid, SIGTERM);
		r = pyprofd_wait(d);
		cr_assert_eq(r.status, 0, "%s", r.err);
		ran_free(&r);
	}
	pyprofd_deinit(d);
}

void pyprofd_kill(struct pyprofd *d)
{
	struct ran r;

	kill(d->pid, SIGKILL);
	r = pyprofd_wait(d);
	cr_assert_eq(r.status, 128 + SIGKILL);
	ran_free(&r);
	unlink(d->sock);
	pyprofd_deinit(d);
}

void pyprofd_shutdown(struct pyprofd *d)
{
	struct ran r;

	free(ctl_ok(d, "shutdown", NULL));
	r = pyprofd_wait(d);
	cr_assert(r.status == 0, "pyprofd ended with %d: %s", r.status, r.err);
	cr_assert_str_eq(r.err, "");
	ran_free(&r);
	pyprofd_deinit(d);
}

void pyprofd_fails(struct pyprofd *d, int status, const char *what, ...)
{
	struct ran r;
	va_list ap;

	va_start(ap, what);
	launch(d, ap);
	va_end(ap);
	r = pyprofd_wait(d);
	check_failed(&r, status, what, "pyprofd");
	cr_assert_str_eq(r.out, "");
	ran_free(&r);
}

/* The client --------------------------------------------------------------------------------- */

static struct ran run_ctl(const struct pyprofd *d, va_list ap)
{
	_cleanup_fclose_ FILE *out = tmpfile(), *err = tmpfile();
	struct command c = {.uid = d->uid, .gid = d->group, .env = d->env};
	struct ran r = {0};

	cr_assert(out && err);
	c.out = fileno(out);
	c.err = fileno(err);
	collect(&c, "pyprofctl", d->sock, ap);
	ctl_add_options(d, c.argv, ARGS_MAX);
	r.status = wait_end(spawn(&c), "pyprofctl");
	r.out = fd_text(c.out, &r.nout);
	r.err = fd_text(c.err, NULL);
	check_sanitizers(r.err);
	take_forecast(r.err, &r.forecast);
	return r;
}

struct ran ctl(const struct pyprofd *d, ...)
{
	struct ran r;
	va_list ap;

	va_start(ap, d);
	r = run_ctl(d, ap);
	va_end(ap);
	return r;
}

static char *expect_ok(struct ran *r)
{
	cr_assert(r->status == 0, "pyprofctl ended with %d: %s", r->status, r->err);
	cr_assert_str_eq(r->err, "");
	free(r->err);
	free(r->forecast);
	return r->out;
}

char *ctl_ok(const struct pyprofd *d, ...)
{
	struct ran r;
	va_list ap;

	va_start(ap, d);
	r = run_ctl(d, ap);
	va_end(ap);
	return expect_ok(&r);
}

void ctl_fails(const struct pyprofd *d, int status, const char *what, ...)
{
	const char *command;
	struct ran r;
	va_list ap;

	va_start(ap, what);
	r = run_ctl(d, ap);
	va_end(ap);
	va_start(ap, what);
	command = va_arg(ap, const char *);
	va_end(ap);
	check_failed(&r, status, what, "pyprofctl");
	if (!command || strcmp(command, "doctor") != 0)
		cr_assert_str_eq(r.out, "");
	ran_free(&r);
}

static json_t *status_by_command(const struct pyprofd *d)
{
	_cleanup_free_ char *text = ctl_ok(d, "status", "--json", NULL);
	json_t *root = json_loads(text, 0, NULL);

	cr_assert(root, "not JSON: %s", text);
	return root;
}

json_t *ctl_status(const struct pyprofd *d)
{
	_cleanup_(client_freep) struct client *c = NULL;
	struct diag diag = {0};
	json_t *root = NULL;

	if (d->uid)
		return status_by_command(d);
	assert_diag_ok(client_open(d->sock, &c, &diag), &diag);
	client_set_timeout(c, patience_left().tv_sec + 1);
	assert_diag_ok(client_request(c, "GET", "/v1/status", NULL, &root, &diag), &diag);
	return root;
}

json_t *ctl_target(const struct pyprofd *d, size_t i)
{
	json_t *root = ctl_status(d);
	json_t *target = json_incref(json_array_get(json_object_get(root, "targets"), i));

	json_decref(root);
	cr_assert(target, "there is no target %zu", i);
	return target;
}

void ctl_step(void)
{
	poll(NULL, 0, 10 * PATIENCE_STEP_MS);
}

json_int_t ctl_number(const struct pyprofd *d, size_t i, const char *key)
{
	json_t *target = ctl_target(d, i), *v = json_object_get(target, key);
	json_int_t n = json_integer_value(v);

	cr_assert(json_is_integer(v), "%s is not a number", key);
	json_decref(target);
	return n;
}

void ctl_until(const struct pyprofd *d, size_t i, const char *key, json_int_t least)
{
	json_int_t n;

	while ((n = ctl_number(d, i, key)) < least) {
		cr_assert(!patience_over(), "%s of target %zu: %lld, not %lld", key, i,
			  (long long)n, (long long)least);
		ctl_step();
	}
}

json_t *ctl_target_of(const struct pyprofd *d, pid_t pid)
{
	json_t *root = ctl_status(d), *one, *found = NULL;
	size_t i;

	json_array_foreach(json_object_get(root, "targets"), i, one)
	{
		if (json_integer_value(json_object_get(one, "pid")) == pid)
			found = json_incref(one);
	}
	json_decref(root);
	return found;
}

json_int_t ctl_number_of(const struct pyprofd *d, pid_t pid, const char *key)
{
	json_t *target = ctl_target_of(d, pid);
	json_int_t n = json_integer_value(json_object_get(target, key));

	cr_assert(target, "there is no target %d", pid);
	json_decref(target);
	return n;
}

json_t *ctl_target_at_rest(const struct pyprofd *d, size_t i)
{
	json_t *target = ctl_target(d, i);

	while (!strcmp(json_string_value(json_object_get(target, "state")), "stopping")) {
		cr_assert(!patience_over(), "the target is still being stopped");
		json_decref(target);
		patience_step();
		target = ctl_target(d, i);
	}
	return target;
}

pid_t pid_of_nobody(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	cr_assert(pid > 0 && waitpid(pid, NULL, 0) == pid);
	return pid;
}

const char *pid_text(char out[16], pid_t pid)
{
	snprintf(out, 16, "%d", pid);
	return out;
}
