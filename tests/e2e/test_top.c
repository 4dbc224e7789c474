// SPDX-License-Identifier: BSD-2-Clause
/*
 * top in a pseudo-terminal: the test presses keys, changes the window's size, and checks the
 * screen; and watch, which needs no terminal. The test does not emulate a terminal: it searches the
 * stream for text, which ncurses writes in one piece when it is new.
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/daemon.h"
#include "harness/kept.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16];
static int tty;
static pid_t top;
static char seen[1 << 20];
static size_t nseen;

/* The target calls its function all the time, but not faster than the screen needs it. */
static void setup(void)
{
	struct interpreter it = traced_newest();

	traced_ready(&t, pid, it.exe, "run.py", "paced", "1000000", "100", "0.01", NULL);
	pyprofd_start(&d, NULL);
	free(ctl_ok(&d, "attach", pid, NULL));
	traced_go(&t);
}

static void teardown(void)
{
	if (d.pid)
		pyprofd_shutdown(&d);
	traced_stop(&t);
}

TestSuite(top, .init = setup, .fini = teardown);

struct size {
	unsigned short columns, lines;
};

static const struct size usual = {80, 24};

/* In the daemon's directory, so that recordings are made there. options end with NULL. */
static void start_sized(struct size size, const char *const *options)
{
	struct winsize ws = {.ws_row = size.lines, .ws_col = size.columns};
	const char *args[16] = {"pyprofctl", "--socket", d.sock, "top"};
	char program[4096];

	snprintf(program, sizeof(program), "%s/pyprofctl", getenv("PYPROF_BUILD"));
	for (size_t i = 0; options[i]; i++)
		args[4 + i] = options[i];
	top = forkpty(&tty, NULL, NULL, &ws);
	cr_assert(top >= 0);
	if (top == 0) {
		setenv("TERM", "xterm", 1);
		setenv("LC_ALL", "C.UTF-8", 1);
		if (chdir(d.dir) < 0)
			_exit(126);
		execv(program, (char *const *)args);
		_exit(127);
	}
	nseen = 0;
}

static void start_top(const char *interval)
{
	start_sized(usual, (const char *const[]){"-i", interval, NULL});
}

static void press(const char *keys)
{
	cr_assert(write(tty, keys, strlen(keys)) == (ssize_t)strlen(keys));
}

#define QUIET 100	  /* ms without output, after which keys are pressed again */
#define KEEP  (64 * 1024) /* bytes of the stream that are kept when there is no room */

/* Read until this text arrives; returns where it is. keys: pressed whenever there is no output. */
static char *await(const char *text, const char *keys)
{
	for (;;) {
		struct pollfd p = {.fd = tty, .events = POLLIN};
		char *at;
		ssize_t n;

		seen[nseen] = '\0';
		at = strstr(seen, text);
		if (at)
			return at;
		cr_assert(!patience_over(), "no '%s' in:\n%s", text, seen);
		if (poll(&p, 1, *keys ? QUIET : patience_left_ms()) == 0) {
			press(keys);
			continue;
		}
		if (nseen > sizeof(seen) - KEEP) {
			memmove(seen, seen + nseen - KEEP, KEEP);
			nseen = KEEP;
		}
		n = read(tty, seen + nseen, sizeof(seen) - 1 - nseen);
		cr_assert(n >= 0, "it ended before '%s':\n%s", text, seen);
		nseen += (size_t)n;
	}
}

/* Read until this text arrives, and discard the stream before it. */
static void expect_pressing(const char *text, const char *keys)
{
	char *at = await(text, keys);

	nseen -= (size_t)(at - seen) + strlen(text);
	memmove(seen, at + strlen(text), nseen);
}

static void expect(const char *text)
{
	expect_pressing(text, "");
}

/* Of a changed line, ncurses writes only the changed letters, unless the screen is redrawn. */
static void expect_redrawn(const char *text)
{
	expect_pressing(text, "\f");
}

static void leave(void)
{
	char rest[4096];
	int status;

	press("q");
	while (read(tty, rest, sizeof(rest)) > 0)
		;
	cr_assert(waitpid(top, &status, 0) == top);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
	close(tty);
}

static void keys(void)
{
	start_top("0.2");
	expect("1 traced");
	expect("CALLS/S");
	expect("(empty)");
	press("t");
	expect("THREAD");
	press("t");
	expect("FUNCTION");
	press(">");
	expect("cum");
	press("w");
	expect("wall");
	press("/");
	expect("filter: ");
	press("no such function\n");
	expect("| filter no such");
	press("/\b\b\b\b\b\b\b\b\b\b\b\b\b\b\b\bpaced\n");
	expect("(empty)");
	press("\n");
	expect("callers of ");
	expect("CALLED BY");
	expect("(measured)"); /* main is the first row when sorted by cum */
	press("\n");
	expect("FUNCTION");
	press("p");
	expect("PAUSED");
	press("p");
	press("z");
	expect("y/n");
	press("y");
	leave();
}

/* Everything that can be shown fits on small, usual and large screens. */
static void check_size(struct size size)
{
	char cpus[64];

	snprintf(cpus, sizeof(cpus), "%% of %ld CPUs", sysconf(_SC_NPROCESSORS_ONLN));
	start_sized(size, (const char *const[]){"-i", "0.2", NULL});
	expect("SELF%");
	expect("(empty)");
	expect("? help");
	press("?");
	expect("Keys of pyprofctl top");
	expect("quit");
	expect("any other key returns");
	press("x");
	expect("FUNCTION");
	press("f");
	expect_redrawn(size.columns > 100 ? "/paced.py:" : "(empty)");
	press("fP");
	expect_redrawn("PID COMMAND");
	expect(" python");
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
		press("%");
		expect_redrawn(cpus);
	}
	press("b");
	expect_redrawn("L");
	expect("lock");
	expect("REASONS");
	press("bt");
	expect_redrawn("PID/TID THREAD");
	press("\n");
	snprintf(cpus, sizeof(cpus), "thread %s/", pid);
	expect_redrawn(cpus);
	expect("(empty)");
	press("\033");
	expect_redrawn("cpu clock | by self");
	press("stottime,name\n");
	expect_redrawn("by tottime,name");
	press("sno\n");
	expect("unknown or ambiguous sort key 'no'");
	leave();
}

/* Returns whether the stream up to a text has sequences of the eight colours: ESC [ 31 m, 41 m */
static bool coloured(const char *text)
{
	const char *end = await(text, "");

	for (const char *p = seen; p + 4 < end; p++)
		if (p[0] == '\033' && p[1] == '[' && (p[2] == '3' || p[2] == '4') && p[3] >= '0' &&
		    p[3] <= '7' && p[4] == 'm')
			return true;
	return false;
}

/* Letters for reasons are coloured, unless NO_COLOR is set. */
static void colours(void)
{
	start_sized(usual, (const char *const[]){"--waits", NULL});
	cr_assert(coloured("REASONS"));
	leave();
	setenv("NO_COLOR", "1", 1);
	start_sized(usual, (const char *const[]){"--waits", NULL});
	cr_assert(!coloured("q quit"), "%s", seen);
	leave();
	unsetenv("NO_COLOR");
}

/* "REC 1.2s to part.json" */
static double recorded_s(void)
{
	expect_redrawn("REC ");
	await("s to part.json", "\f");
	return strtod(seen, NULL);
}

/* A recording has only what happens between its start and its end. */
static void record(void)
{
	char path[256], *text;
	json_t *root, *target;
	size_t n;

	pyprofd_file(&d, "part.json", path, sizeof(path));
	start_sized(usual, (const char *const[]){"-i", "0.2", "-o", "part.json", NULL});
	expect("(empty)");
	press("r");
	expect("REC ");
	expect("to part.json");
	/* The time that is shown passes, and the target calls its function meanwhile. */
	while (recorded_s() < 0.5)
		continue;
	ctl_until(&d, 0, "events", ctl_number(&d, 0, "events") + 500);
	press("r");
	expect_redrawn("recorded ");
	expect("s to part.json");
	leave();
	text = file_text(path, &n);
	cr_assert(text, "no file");
	root = json_loads(text, 0, NULL);
	target = json_array_get(json_object_get(root, "targets"), 0);
	cr_assert(target && json_is_true(json_object_get(target, "since")), "%.2000s", text);
	cr_assert(strstr(text, "\"empty\""), "%.2000s", text);
	json_decref(root);
	free(text);
	cr_assert_eq(unlink(path), 0);
}

/* Without a name the file is new; leaving ends a recording, and says where it is. */
static void record_until_quit(void)
{
	char path[256], name[64], *text;
	const char *at, *end;
	size_t n;

	start_top("0.2");
	expect("(empty)");
	press("r");
	expect_redrawn("REC ");
	expect(" to ");
	press("q");
	expect("recorded ");
	expect(" to ");
	while (!memchr(seen, '\n', nseen))
		nseen += (size_t)read(tty, seen + nseen, sizeof(seen) - 1 - nseen);
	at = seen;
	end = strstr(at, ".html");
	cr_assert(end && end - at < 40, "%s", at);
	snprintf(name, sizeof(name), "%.*s.html", (int)(end - at), at);
	pyprofd_file(&d, name, path, sizeof(path));
	text = file_text(path, &n);
	cr_assert(text && strstr(text, "<html"), "%s", path);
	free(text);
	cr_assert_eq(unlink(path), 0);
	leave();
}

static void recordings_that_cannot_be_written(void)
{
	int status;

	start_sized(usual, (const char *const[]){"-i", "0.2", "-o", "/no/such/x.json", NULL});
	expect("(empty)");
	press("r");
	expect("/no/such/x.json");
	leave();
	ctl_fails(&d, PYP_EXIT_USAGE, "needs the full screen", "top", "-o", "x.json", NULL);
	start_sized(usual, (const char *const[]){"-o", "x.svg", NULL});
	expect("no format has the extension '.svg'");
	cr_assert_eq(waitpid(top, &status, 0), top);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == PYP_EXIT_USAGE);
	close(tty);
}

static void bad_pattern_is_reported(void)
{
	start_top("0.2");
	expect("CALLS/S");
	press("p/(\n");
	expect("invalid pattern");
	leave();
}

static void resize(void)
{
	struct winsize small = {.ws_row = 5, .ws_col = 20}, tiny = {.ws_row = 1, .ws_col = 1},
		       large = {.ws_row = 50, .ws_col = 200};

	start_top("0.2");
	expect("CALLS/S");
	cr_assert(ioctl(tty, TIOCSWINSZ, &small) == 0);
	expect("...");
	cr_assert(ioctl(tty, TIOCSWINSZ, &tiny) == 0);
	cr_assert(ioctl(tty, TIOCSWINSZ, &large) == 0);
	expect("lost | overhead ");
	leave();
}

static void the_target_ends(void)
{
	start_top("0.2");
	expect("(empty)");
	kill(t.pid, SIGKILL);
	expect_redrawn("1 ended");
	leave();
}

static void the_daemon_ends(void)
{
	start_top("0.2");
	expect("(empty)");
	pyprofd_shutdown(&d);
	expect("no daemon at");
	leave();
}

/* The output of a command that prints what happens within some seconds, once it has this */
static char *text_with(const char *what, const char *const a[8])
{
	for (;;) {
		char *text = ctl_ok(&d, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], NULL);

		if (strstr(text, what))
			return text;
		cr_assert(!patience_over(), "no %s: %s", what, text);
		free(text);
	}
}

static void watch_is_text(void)
{
	char *text = text_with("(empty)", (const char *const[8]){"watch", "-i", "0.2", "-n", "2",
								 "-l", "3", "empty"});
	const char *first = strstr(text, "CALLS/S");

	cr_assert(first && strstr(first + 1, "CALLS/S"), "%s", text);
	cr_assert(!strchr(text, '\033'), "%s", text);
	free(text);
	/* without a terminal, top works like watch */
	text = ctl_ok(&d, "top", "-i", "0.1", "-n", "1", "--threads", NULL);
	cr_assert(strstr(text, "PID/TID") && strstr(text, pid), "%s", text);
	free(text);
	text = ctl_ok(&d, "watch", "-i", "0.1", "-n", "1", "--processes", "-s", "calls,name", NULL);
	cr_assert(strstr(text, "PID COMMAND") && strstr(text, "python"), "%s", text);
	free(text);
	text = text_with("/", (const char *const[8]){"watch", "-i", "0.1", "-n", "1", "--waits",
						     "--full-paths"});
	cr_assert(strstr(text, "REASONS"), "%s", text);
	free(text);
	ctl_fails(&d, PYP_EXIT_USAGE, "sort key 'x'", "watch", "-s", "x", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "exclude", "watch", "--threads", "--processes", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "invalid pattern", "watch", "(", NULL);
}

Test(top, of_one_target)
{
	keys();
	check_size((struct size){60, 20});
	check_size(usual);
	check_size((struct size){200, 60});
	colours();
	record();
	record_until_quit();
	recordings_that_cannot_be_written();
	bad_pattern_is_reported();
	resize();
	watch_is_text();
	the_target_ends();
	the_daemon_ends();
}

/* ---- continuous mode ---- */

static char tag[32], idle_pid[16];
static struct traced idle;

/* Two processes, one of which does nothing; neither of them starts any more. */
static void setup_continuous(void)
{
	struct interpreter it = traced_newest();

	snprintf(tag, sizeof(tag), "tag-%d-%u", (int)getpid(),
		 (unsigned int)(clock_monotonic_ns() / 1000 % 1000000));
	traced_ready(&t, pid, it.exe, "continuous.py", "seldom", tag, NULL);
	traced_ready(&idle, idle_pid, it.exe, "continuous.py", "idle", tag, NULL);
	kill(t.pid, SIGSTOP);
}

static void teardown_continuous(void)
{
	if (d.pid)
		pyprofd_shutdown(&d);
	traced_stop(&t);
	traced_stop(&idle);
}

TestSuite(top_continuous, .init = setup_continuous, .fini = teardown_continuous);

/* The number of kept intervals of processes, or of those that are sampled */
static json_int_t state(const char *object, const char *key)
{
	json_t *status = ctl_status(&d);
	const json_t *c = json_object_get(status, "continuous");
	json_int_t n =
		json_integer_value(json_object_get(object ? json_object_get(c, object) : c, key));

	json_decref(status);
	return n;
}

static void wait_for(const char *object, const char *key, json_int_t least)
{
	while (state(object, key) < least) {
		cr_assert(!patience_over(), "%s: %lld", key, (long long)state(object, key));
		ctl_step();
	}
}

/* Processes first, then functions of all, then those of one; and back. */
static void views(void)
{
	char text[64];

	start_sized(usual, (const char *const[]){NULL});
	expect("MOST TIME IN");
	expect_redrawn("2 processes sampled");
	expect_redrawn(pid);
	expect_redrawn(" continuous ");
	expect_redrawn("(inner)");
	press("P");
	expect_redrawn("FUNCTION");
	expect_redrawn("(outer)");
	press("\n");
	expect_redrawn("CALLED BY");
	press("\033");
	expect_redrawn("FUNCTION");
	press("P");
	expect_redrawn("SERVICE");
	press("\n");
	snprintf(text, sizeof(text), "process %s", pid);
	expect_redrawn(text);
	expect_redrawn("(inner)");
	press("t");
	expect_redrawn("THREAD");
	press("\033");
	expect_redrawn("MOST TIME IN");
	press("/no such service\n");
	expect_redrawn("filter no such");
	press("/\b\b\b\b\b\b\b\b\b\b\b\b\b\b\b^continuous$\n");
	expect_redrawn("(inner)");
	press("zy");
	expect("would lose");
	leave();
}

/* Functions of one are shown and left, repeatedly, while a recording goes on. */
static void record_beside_views(const char *path)
{
	json_int_t intervals;
	char *text;
	size_t n;

	start_sized(usual, (const char *const[]){"-o", "part.json", NULL});
	expect_redrawn("(inner)");
	press("r");
	expect("REC ");
	intervals = state(NULL, "intervals");
	for (int i = 0; i < 3; i++) {
		press("P\n");
		expect_redrawn("CALLED BY");
		press("\033P");
		expect_redrawn("SERVICE");
	}
	wait_for(NULL, "intervals", intervals + 2);
	press("r");
	expect_redrawn("recorded ");
	leave();
	text = file_text(path, &n);
	cr_assert(text && strstr(text, "\"inner\""), "no recording");
	free(text);
	cr_assert_eq(unlink(path), 0);
}

static void check_text(void)
{
	char *text = text_with("(inner)", (const char *const[8]){"top", "-n", "2"});

	cr_assert(strstr(text, "SERVICE") && strstr(text, pid), "%s", text);
	cr_assert(!strstr(text, idle_pid), "it does nothing: %s", text);
	free(text);
	text = text_with("(inner)", (const char *const[8]){"top", "-n", "1", "-p", pid});
	cr_assert(strstr(text, "FUNCTION"), "%s", text);
	cr_assert(!strstr(text, "CALLS"), "calls are not counted: %s", text);
	free(text);
	text = ctl_ok(&d, "top", "-n", "1", "-p", idle_pid, NULL);
	cr_assert(!strstr(text, "(inner)"), "%s", text);
	free(text);
	text = ctl_ok(&d, "watch", "-n", "1", "--threads", NULL);
	cr_assert(strstr(text, "PID/TID"), "%s", text);
	free(text);
}

/*
 * Looking and recording take nothing from the intervals: their samples are the CPU time of the process, which only
 * works while it is sampled.
 */
Test(top_continuous, intervals_are_not_disturbed)
{
	uint64_t from = 0, to = 0;
	char path[256], keep[256];
	double stolen;
	json_t *list;
	struct ran r;
	char *text;

	pyprofd_init(&d);
	pyprofd_file(&d, "part.json", path, sizeof(path));
	pyprofd_file(&d, "keep", keep, sizeof(keep));
	pyprofd_launch(&d, "--continuous", "--interval", "1", "--rate", "999", "--match", tag,
		       "--keep", keep, NULL);
	pyprofd_ready(&d);
	wait_for("processes", "sampled", 2);
	cr_assert(clock_process_cpu_ns(t.pid, &from));
	stolen = kept_stolen_s();
	kill(t.pid, SIGCONT);
	views();
	record_beside_views(path);
	check_text();
	/* Enough for a sum */
	do {
		ctl_step();
		cr_assert(!patience_over() && clock_process_cpu_ns(t.pid, &to));
	} while (to - from < PATIENCE_WHILE_MS * UINT64_C(1000000));
	kill(t.pid, SIGSTOP);
	cr_assert(clock_process_cpu_ns(t.pid, &to));
	stolen = kept_stolen_s() - stolen;
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 0, "%s", r.err);
	ran_free(&r);
	text = ctl_ok(&d, "history", "list", "--dir", keep, "--from", "-9h", "--json", NULL);
	list = json_loads(text, 0, NULL);
	kept_check_sum(list, 999, (double)(to - from) / 1e9, stolen);
	json_decref(list);
	free(text);
	pyprofd_deinit(&d);
}
