// SPDX-License-Identifier: BSD-2-Clause
/*
 * -o in a directory that other users can write to: another user's links, files and FIFOs are
 * neither followed nor used.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

#define STRANGER 65534

static struct pyprofd d; /* never started: only its directory is used */
static char shared[128], saved[128], victim[128];

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
	assert_ok(chmod(path, mode));
}

static void setup(void)
{
	struct snapshot *s = snapshot_build("target 42\nthread 42 43 worker\n"
					    "main app.py:1 1 1000\n");
	const struct format_opts o = {0};

	if (geteuid() != 0)
		cr_skip_test("needs root");
	pyprofd_init(&d);
	report_save("json", s, &o, d.dir, "saved.json");
	snapshot_free(s);
	pyprofd_file(&d, "saved.json", saved, sizeof(saved));
	pyprofd_file(&d, "victim", victim, sizeof(victim));
	write_file(victim, "precious\n", 0600);
	pyprofd_file(&d, "shared", shared, sizeof(shared));
	assert_ok(mkdir(shared, 0700));
	assert_ok(chmod(shared, 01777));
}

static void teardown(void)
{
	if (d.dir[0])
		pyprofd_deinit(&d);
}

TestSuite(outfile, .init = setup, .fini = teardown);

/* A path in the shared directory. */
static const char *in_shared(const char *name, char out[192])
{
	snprintf(out, 192, "%s/%s", shared, name);
	return out;
}

static void give_to_stranger(const char *path)
{
	assert_ok(lchown(path, STRANGER, STRANGER));
}

static void assert_victim_unharmed(void)
{
	char *text = file_text(victim, NULL);

	cr_assert(text, "the victim has gone");
	cr_assert_str_eq(text, "precious\n");
	free(text);
}

Test(outfile, anothers_link_is_not_followed)
{
	char out[192];

	assert_ok(symlink(victim, in_shared("out.txt", out)));
	give_to_stranger(out);
	ctl_fails(&d, PYP_EXIT_FAILURE, "belongs to another user", "report", saved, "-o", out,
		  NULL);
	assert_victim_unharmed();
	/* also if the link's target does not exist */
	unlink(victim);
	ctl_fails(&d, PYP_EXIT_FAILURE, "belongs to another user", "report", saved, "-o", out,
		  NULL);
	cr_assert(access(victim, F_OK) < 0, "a file was created through another user's link");
}

Test(outfile, anothers_link_to_a_directory_is_not_followed)
{
	char link[192], out[208];

	assert_ok(symlink(d.dir, in_shared("reports", link)));
	give_to_stranger(link);
	snprintf(out, sizeof(out), "%s/victim", link);
	ctl_fails(&d, PYP_EXIT_FAILURE, "belongs to another user", "report", saved, "-o", out,
		  NULL);
	assert_victim_unharmed();
}

/* Links of the same user and of root, such as /var/run, are followed. */
Test(outfile, own_link_is_followed)
{
	char out[192], *text;

	assert_ok(symlink(victim, in_shared("out.txt", out)));
	free(ctl_ok(&d, "report", saved, "-f", "csv", "-o", out, NULL));
	text = file_text(victim, NULL);
	cr_assert(text && strstr(text, "ncalls"), "%s", text);
	free(text);
}

Test(outfile, anothers_file_lends_no_mode)
{
	char out[192];
	struct stat st;

	write_file(in_shared("out.txt", out), "mine", 0666);
	give_to_stranger(out);
	free(ctl_ok(&d, "report", saved, "-o", out, NULL));
	assert_ok(stat(out, &st));
	cr_assert((st.st_mode & 0777) == 0600, "its mode is %o", st.st_mode & 0777);
	cr_assert(st.st_uid == 0, "it belongs to uid %u", st.st_uid);
}

Test(outfile, new_file_is_private)
{
	char out[192];
	struct stat st;

	umask(0);
	free(ctl_ok(&d, "report", saved, "-o", in_shared("out.txt", out), NULL));
	assert_ok(stat(out, &st));
	cr_assert((st.st_mode & 0777) == 0600, "its mode is %o", st.st_mode & 0777);
}

/* The FIFO has no reader; opening it would block forever. */
Test(outfile, fifo_is_refused)
{
	char out[192];

	assert_ok(mkfifo(in_shared("out.txt", out), 0666));
	give_to_stranger(out);
	ctl_fails(&d, PYP_EXIT_FAILURE, "it is a FIFO", "report", saved, "-o", out, NULL);
}

Test(outfile, what_users_do_still_works)
{
	char *text;

	free(ctl_ok(&d, "report", saved, "-o", "/dev/null", NULL));
	text = ctl_ok(&d, "report", saved, "-f", "csv", "-o", "/dev/stdout", NULL);
	cr_assert(strstr(text, "ncalls"), "%s", text);
	free(text);
	text = ctl_ok(&d, "report", saved, "-f", "csv", "-o", "-", NULL);
	cr_assert(strstr(text, "ncalls"), "%s", text);
	free(text);
}
