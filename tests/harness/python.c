// SPDX-License-Identifier: BSD-2-Clause
/* Running a Python script: see python.h. */
#include "harness/python.h"

#include <dirent.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/test.h"

static char *read_all(FILE *f)
{
	char *ret;
	long size;

	cr_assert(fseek(f, 0, SEEK_END) == 0);
	size = ftell(f);
	rewind(f);
	cr_assert(size >= 0);
	ret = calloc((size_t)size + 1, 1);
	cr_assert(ret && fread(ret, 1, (size_t)size, f) == (size_t)size);
	return ret;
}

char *python_run(const char *exe, const char *script, const char *arg)
{
	const char *argv[] = {exe, "-E", "-c", script, arg, NULL};
	_cleanup_fclose_ FILE *out = tmpfile();
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;
	char *ret;

	cr_assert(out);
	assert_ok(posix_spawn_file_actions_init(&actions));
	assert_ok(posix_spawn_file_actions_adddup2(&actions, fileno(out), 1));
	assert_ok(posix_spawn_file_actions_adddup2(&actions, fileno(out), 2));
	assert_ok(posix_spawn(&pid, exe, &actions, NULL, (char *const *)argv, environ));
	posix_spawn_file_actions_destroy(&actions);
	cr_assert(waitpid(pid, &status, 0) == pid);
	ret = read_all(out);
	cr_assert(status == 0, "%s ended with status %#x:\n%s", exe, status, ret);
	return ret;
}

char *temp_dir_new(void)
{
	char *dir = strdup("/tmp/pyprof-test.XXXXXX");

	cr_assert(dir && mkdtemp(dir));
	return dir;
}

void temp_dir_remove(char *dir)
{
	DIR *d = opendir(dir);

	cr_assert(d);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	rmdir(dir);
	free(dir);
}
