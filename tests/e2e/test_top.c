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
#include <time.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16];
static int tty;
static pid_t top;
static char seen[1 << 20];
static size_t nseen;

static void setup(void)
{
	struct interpreter it = traced_newest();

	traced_ready(&t, pid, it.exe, "run.py", "busy_empty", "60", NULL);
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

TestSuite(top, .init = setup, .fini = teardown, .timeout = 120);

static void start_top(const char *interval)
{
	struct winsize ws = {.ws_row = 24, .ws_col = 80};
	char program[4096];

	snprintf(program, sizeof(program), "%s/pyprofctl", getenv("PYPROF_BUILD"));
	top = forkpty(&tty, NULL, NULL, &ws);
	cr_assert(top >= 0);
	if (top == 0) {
		setenv("TERM", "xterm", 1);
		setenv("LC_ALL", "C.UTF-8", 1);
		execl(program, program, "--socket", d.sock, "top", "-i", interval, (char *)NULL);
		_exit(127);
	}
	nseen = 0;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void press(const char *keys)
{
	cr_assert(write(tty, keys, strlen(keys)) == (ssize_t)strlen(keys));
}

/* Read until this text arrives, and discard the stream before it. keys: pressed at intervals. */
static void expect_pressing(const char *text, const char *keys)
{
	double end = now() + DAEMON_DEADLINE, next = now();

	for (;;) {
		struct pollfd p = {.fd = tty, .events = POLLIN};
		char *at;
		ssize_t n;

		seen[nseen] = '\0';
		at = strstr(seen, text);
		if (at) {
			nseen -= (size_t)(at - seen) + strlen(text);
			memmove(seen, at + strlen(text), nseen);
			return;
		}
		cr_assert(now() < end && poll(&p, 1, 1000) >= 0, "no '%s' in:\n%s", text, seen);
		if (now() > next) {
			press(keys);
			next = now() + 0.3;
		}
		n = p.revents ? read(tty, seen + nseen, sizeof(seen) - 1 - nseen) : 0;
		cr_assert(n >= 0, "it ended before '%s':\n%s", text, seen);
		nseen += (size_t)n;
	}
}

static void expect(const char *text)
{
	expect_pressing(text, "");
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

Test(top, keys)
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
	press("/\b\b\b\b\b\b\b\b\b\b\b\b\b\b\b\bempty\n");
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

Test(top, bad_pattern_is_said)
{
	start_top("0.2");
	expect("CALLS/S");
	press("p/(\n");
	expect("invalid pattern");
	leave();
}

Test(top, resize)
{
	struct winsize small = {.ws_row = 5, .ws_col = 20}, tiny = {.ws_row = 1, .ws_col = 1},
		       large = {.ws_row = 50, .ws_col = 200};

	start_top("0.2");
	expect("CALLS/S");
	cr_assert(ioctl(tty, TIOCSWINSZ, &small) == 0);
	expect("...");
	cr_assert(ioctl(tty, TIOCSWINSZ, &tiny) == 0);
	cr_assert(ioctl(tty, TIOCSWINSZ, &large) == 0);
	expect("overhead about");
	leave();
}

Test(top, the_target_ends)
{
	start_top("0.2");
	expect("(empty)");
	kill(t.pid, SIGKILL);
	/*
	 * of a changed line, ncurses writes only the changed letters, unless the screen is redrawn
	 */
	expect_pressing("1 ended", "\f");
	leave();
}

Test(top, the_daemon_ends)
{
	start_top("0.2");
	expect("(empty)");
	pyprofd_shutdown(&d);
	expect("no daemon at");
	leave();
}

Test(top, watch_is_text)
{
	char *text = ctl_ok(&d, "watch", "-i", "0.2", "-n", "2", "-l", "3", "empty", NULL);
	const char *first = strstr(text, "CALLS/S");

	cr_assert(first && strstr(first + 1, "CALLS/S"), "%s", text);
	cr_assert(strstr(text, "(empty)") && !strchr(text, '\033'), "%s", text);
	free(text);
	/* without a terminal, top works like watch */
	text = ctl_ok(&d, "top", "-i", "0.1", "-n", "1", "--threads", NULL);
	cr_assert(strstr(text, "PID/TID") && strstr(text, pid), "%s", text);
	free(text);
	ctl_fails(&d, PYP_EXIT_USAGE, "--sort", "watch", "-s", "x", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "invalid pattern", "watch", "(", NULL);
}
