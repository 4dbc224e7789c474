// SPDX-License-Identifier: BSD-2-Clause
/* Running third-party tools: see tool.h. */
#include "harness/tool.h"

#include <spawn.h>
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

char *tool_try(const char *const *argv, int *ret_exit)
{
	_cleanup_fclose_ FILE *out = tmpfile();
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	cr_assert(out);
	assert_ok(posix_spawn_file_actions_init(&actions));
	assert_ok(posix_spawn_file_actions_adddup2(&actions, fileno(out), 1));
	assert_ok(posix_spawn_file_actions_adddup2(&actions, fileno(out), 2));
	assert_ok(posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ));
	posix_spawn_file_actions_destroy(&actions);
	cr_assert(waitpid(pid, &status, 0) == pid);
	*ret_exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return read_all(out);
}

char *tool_run(const char *const *argv)
{
	int status;
	char *ret = tool_try(argv, &status);

	cr_assert(status == 0, "%s ended with status %d:\n%s", argv[0], status, ret);
	return ret;
}

static bool in_path(const char *program)
{
	const char *path = getenv("PATH");
	_cleanup_free_ char *copy = strdup(path ? path : "/usr/bin:/bin");
	char *rest = copy;

	cr_assert(copy);
	for (char *dir; (dir = strsep(&rest, ":"));) {
		char file[1024];

		snprintf(file, sizeof(file), "%s/%s", dir, program);
		if (access(file, X_OK) == 0)
			return true;
	}
	return false;
}

void tool_need(const char *program)
{
	const char *require = getenv("PYPROF_TEST_REQUIRE");

	if (in_path(program))
		return;
	if (require && strstr(require, "tools"))
		cr_assert_fail("there is no %s", program);
	cr_skip_test("needs %s", program);
}
