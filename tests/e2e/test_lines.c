// SPDX-License-Identifier: BSD-2-Clause
/*
 * pyprofctl lines: source text beside figures. The target chooses the names of its files, so they
 * are read as its user.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;

static void write_file(const char *path, mode_t mode)
{
	FILE *f = fopen(path, "w");

	cr_assert(f &&
		  fputs("def f0(n):\n    x = 0\n    for i in range(n): x += i  # seen\n", f) > 0);
	cr_assert(fclose(f) == 0 && chmod(path, mode) == 0);
}

static void start(struct traced *t, const char *const files[4])
{
	char pid[16];

	traced_start(t, traced_newest().exe, "named.py", files[0], files[1], files[2], files[3],
		     NULL);
	traced_expect(t, "ready");
	pyprofd_launch(&d, "--pid", pid_text(pid, t->pid), "--mode", "sample", "--rate", "999",
		       NULL);
	pyprofd_ready(&d);
}

static bool has_all(const char *text)
{
	return strstr(text, "(f0)") && strstr(text, "(f1)") && strstr(text, "(f2)") &&
	       strstr(text, "(f3)");
}

/* The report, once it has lines of all four functions. */
static char *report(void)
{
	for (;;) {
		struct ran r = ctl(&d, "lines", NULL);
		char *text = strdup(r.out);

		ran_free(&r);
		if (has_all(text))
			return text;
		cr_assert(!patience_over(), "%s", text);
		free(text);
		ctl_step();
	}
}

/* The part of the report about a function. */
static void assert_about(const char *text, const char *func, const char *what)
{
	const char *at = strstr(text, func), *end = at ? strstr(at, "\n\n") : NULL,
		   *found = at ? strstr(at, what) : NULL;

	cr_assert(end && found && found < end, "%s: no '%s' in\n%s", func, what, text);
}

Test(lines, source_is_read_as_the_user_of_the_target)
{
	char readable[128], secret[128], fifo[128], saved[128], *text;
	const char *seen;
	struct ran ended;
	struct traced t;

	pyprofd_init(&d);
	cr_assert_eq(chmod(d.dir, 0711), 0);
	write_file(pyprofd_file(&d, "readable.py", readable, sizeof(readable)), 0644);
	write_file(pyprofd_file(&d, "secret.py", secret, sizeof(secret)), 0600);
	cr_assert_eq(mkfifo(pyprofd_file(&d, "fifo.py", fifo, sizeof(fifo)), 0666), 0);
	start(&t, (const char *const[4]){readable, secret, fifo, "<string>"});
	text = report();
	assert_about(text, "(f0)", "    for i in range(n): x += i  # seen");
	assert_about(text, "(f1)", "no source: Permission denied (read as user 65534)");
	assert_about(text, "(f2)", "no source: ");
	assert_about(text, "(f3)", "no source: not a regular file");
	seen = strstr(text, "# seen");
	cr_assert(!strstr(seen + 1, "# seen"), "another file's text:\n%s", text);
	free(text);
	text = ctl_ok(&d, "lines", "--no-source", "f0", NULL);
	cr_assert(strstr(text, "(f0)") && !strstr(text, "# seen") && !strstr(text, "(f1)"));
	free(text);
	pyprofd_file(&d, "saved.json", saved, sizeof(saved));
	free(ctl_ok(&d, "snapshot", "-o", saved, NULL));
	ctl_fails(&d, PYP_EXIT_USAGE, "pattern", "lines", "(", NULL);
	free(ctl_ok(&d, "shutdown", NULL));
	ended = pyprofd_wait(&d);
	ran_free(&ended);
	traced_stop(&t);
	/* A saved profile: as a user without rights. */
	text = ctl_ok(&d, "lines", "--from", saved, NULL);
	assert_about(text, "(f0)", "# seen");
	assert_about(text, "(f1)", "no source: Permission denied (read as user 65534)");
	free(text);
	text = ctl_ok(&d, "report", "-f", "lines", saved, "f0", NULL);
	assert_about(text, "(f0)", "# seen");
	free(text);
	pyprofd_deinit(&d);
}

Test(lines, without_samples)
{
	char script[128], saved[128];
	FILE *f;

	pyprofd_init(&d);
	f = fopen(pyprofd_file(&d, "program.py", script, sizeof(script)), "w");
	cr_assert(f && fputs("def f(): pass\nfor _ in range(1000): f()\n", f) >= 0 && !fclose(f));
	pyprofd_file(&d, "saved.json", saved, sizeof(saved));
	free(ctl_ok(&d, "run", "--rate", "0", "-o", saved, "--", traced_newest().exe, script,
		    NULL));
	ctl_fails(&d, PYP_EXIT_FAILURE, "no samples of lines", "lines", "--from", saved, NULL);
	pyprofd_deinit(&d);
}
