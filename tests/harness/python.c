// SPDX-License-Identifier: BSD-2-Clause
/* Running a Python script: see python.h. */
#include "harness/python.h"

#include <dirent.h>
#include <unistd.h>

#include "harness/test.h"
#include "harness/tool.h"

char *python_run(const char *exe, const char *script, const char *arg)
{
	const char *const argv[] = {exe, "-E", "-c", script, arg, NULL};

	return tool_run(argv);
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
