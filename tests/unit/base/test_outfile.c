// SPDX-License-Identifier: BSD-2-Clause
/* base/outfile: whole files or none. */
#include "base/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "harness/test.h"

static char dir[64], path[96];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/pyprof-outfile-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/out", dir);
}

TestSuite(outfile, .init = setup, .timeout = 20);

static int entries(void)
{
	DIR *d = opendir(dir);
	int n = -2;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void put(const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

static void assert_content(const char *text)
{
	char buf[64] = "";
	FILE *f = fopen(path, "r");

	cr_assert(f);
	cr_assert(fgets(buf, sizeof(buf), f));
	fclose(f);
	cr_assert_str_eq(buf, text);
}

static void finish(void)
{
	unlink(path);
	cr_assert(rmdir(dir) == 0, "something is left");
	check_no_leaks();
}

static mode_t mode(void)
{
	struct stat st;

	assert_ok(stat(path, &st));
	return st.st_mode & 0777;
}

Test(outfile, appears_at_once)
{
	struct outfile *of;

	umask(022);
	assert_ok(outfile_check(path, NULL));
	assert_ok(outfile_open(path, &of, NULL));
	fputs("new", outfile_stream(of));
	cr_assert(access(path, F_OK) < 0);
	assert_ok(outfile_commit(of, NULL));
	cr_assert_str_eq(outfile_path(of), path);
	outfile_free(of);
	assert_content("new");
	cr_assert(mode() == 0644 && entries() == 1);
	finish();
}

Test(outfile, replaces_and_keeps_the_mode)
{
	struct outfile *of;

	put("old");
	chmod(path, 0600);
	assert_ok(outfile_open(path, &of, NULL));
	fputs("new", outfile_stream(of));
	assert_content("old");
	assert_ok(outfile_commit(of, NULL));
	outfile_free(of);
	assert_content("new");
	cr_assert(mode() == 0600);
	finish();
}

Test(outfile, without_commit_nothing_happened)
{
	struct outfile *of;

	put("old");
	assert_ok(outfile_open(path, &of, NULL));
	fputs("new", outfile_stream(of));
	outfile_free(of);
	assert_content("old");
	cr_assert(entries() == 1);
	finish();
}

Test(outfile, follows_symbolic_links)
{
	struct outfile *of;
	char target[112];

	snprintf(target, sizeof(target), "%s.real", path);
	fclose(fopen(target, "w"));
	assert_ok(symlink(target, path));
	assert_ok(outfile_open(path, &of, NULL));
	fputs("new", outfile_stream(of));
	assert_ok(outfile_commit(of, NULL));
	outfile_free(of);
	assert_content("new");
	cr_assert(entries() == 2);
	unlink(target);
	finish();
}

Test(outfile, full_disk)
{
	struct outfile *of;
	struct diag diag = {0};

	assert_ok(outfile_open("/dev/full", &of, NULL));
	fputs("new", outfile_stream(of));
	assert_err(outfile_commit(of, &diag), -ENOSPC);
	cr_assert(diag.exit == PYP_EXIT_FAILURE && diag.hint[0]);
	outfile_free(of);
	cr_assert(access("/dev/full", F_OK) == 0);
	finish();
}

Test(outfile, what_cannot_be_written)
{
	const char *bad[] = {"", "/", "/tmp/", "/nonexistent/x", "/dev/null/x", "."};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct diag diag = {0};

		cr_assert(outfile_check(bad[i], &diag) < 0, "%s", bad[i]);
		cr_assert(diag.msg[0] && diag.exit == PYP_EXIT_FAILURE);
	}
	finish();
}

Test(outfile, fallback)
{
	struct outfile *of;

	setenv("TMPDIR", dir, 1);
	assert_ok(outfile_open_fallback("stem", &of, NULL));
	fputs("new", outfile_stream(of));
	assert_ok(outfile_commit(of, NULL));
	snprintf(path, sizeof(path), "%s", outfile_path(of));
	outfile_free(of);
	cr_assert(strncmp(path, dir, strlen(dir)) == 0);
	assert_content("new");
	cr_assert(mode() == 0600);
	finish();
}
