// SPDX-License-Identifier: BSD-2-Clause
/* base/outfile: a file is written completely or not at all. */
#include "base/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "harness/test.h"

static char dir[64], path[96];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/pyprof-outfile-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/out", dir);
}

TestSuite(outfile, .init = setup);

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
	cr_assert(mode() == 0600 && entries() == 1);
	finish();
}

Test(outfile, replaces_and_keeps_the_mode)
{
	struct outfile *of;

	put("old");
	chmod(path, 0640);
	assert_ok(outfile_open(path, &of, NULL));
	fputs("new", outfile_stream(of));
	assert_content("old");
	assert_ok(outfile_commit(of, NULL));
	outfile_free(of);
	assert_content("new");
	cr_assert(mode() == 0640 && entries() == 1);
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

Test(outfile, killed_leaves_nothing)
{
	struct outfile *of;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (outfile_open(path, &of, NULL) == 0 && fputs("new", outfile_stream(of)) >= 0 &&
		    fflush(outfile_stream(of)) == 0)
			raise(SIGKILL);
		_exit(1);
	}
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	cr_assert(entries() == 0, "something is left");
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

/* A path below a linked directory, a relative link, and a link whose target does not exist yet. */
Test(outfile, follows_links_of_directories)
{
	char link[112], through[140];
	struct outfile *of;

	snprintf(link, sizeof(link), "%s.dir", path);
	assert_ok(symlink(".", link));
	snprintf(through, sizeof(through), "%s/link", dir);
	assert_ok(symlink("out.dir//out", through));
	assert_ok(outfile_open(through, &of, NULL));
	fputs("new", outfile_stream(of));
	assert_ok(outfile_commit(of, NULL));
	outfile_free(of);
	assert_content("new");
	unlink(link);
	unlink(through);
	finish();
}

Test(outfile, links_in_a_circle)
{
	struct diag diag = {0};

	assert_ok(symlink("out", path));
	assert_err(outfile_check(path, &diag), -ELOOP);
	finish();
}

Test(outfile, own_descriptor)
{
	char name[40], buf[8] = "";
	struct outfile *of;
	int fds[2];

	assert_ok(pipe(fds));
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[1]);
	assert_ok(outfile_open(name, &of, NULL));
	fputs("new", outfile_stream(of));
	assert_ok(outfile_commit(of, NULL));
	outfile_free(of);
	cr_assert(read(fds[0], buf, sizeof(buf)) == 3);
	cr_assert_str_eq(buf, "new");
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[0]);
	cr_assert(outfile_check(name, NULL) == -EBADF, "that is the end for reading");
	close(fds[0]);
	close(fds[1]);
	finish();
}

/* The FIFO has no reader: neither the check nor the opening may block. */
Test(outfile, refuses_a_fifo)
{
	struct diag diag = {0};
	struct outfile *of;

	assert_ok(mkfifo(path, 0600));
	assert_err(outfile_check(path, &diag), -EINVAL);
	cr_assert(strstr(diag.msg, "FIFO") && diag.hint[0]);
	assert_err(outfile_open(path, &of, NULL), -EINVAL);
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
