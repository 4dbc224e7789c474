// SPDX-License-Identifier: BSD-2-Clause
#include "harness/temp_dir.h"

#include <ftw.h>
#include <unistd.h>

#include "harness/test.h"

#define DIRS_MAX 256

static struct made {
	pid_t by; /* a forked process leaves it alone; 0: removed */
	char path[64];
} made[DIRS_MAX];

static struct made *find(const char *path)
{
	for (struct made *m = made; m < made + DIRS_MAX; m++)
		if (*path ? m->by && strcmp(m->path, path) == 0 : !m->by)
			return m;
	return NULL;
}

void temp_dir_make(char *path)
{
	struct made *m = find("");

	cr_assert(mkdtemp(path), "%s", path);
	cr_assert(m && strlen(path) < sizeof(m->path));
	m->by = getpid();
	snprintf(m->path, sizeof(m->path), "%s", path);
}

char *temp_dir_new(void)
{
	char *dir = strdup("/tmp/pyprof-test.XXXXXX");

	cr_assert(dir);
	temp_dir_make(dir);
	return dir;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	(void)remove(path);
	return 0;
}

void temp_dir_delete(const char *path)
{
	struct made *m = find(path);

	if (m)
		m->by = 0;
	/* What is in it first. Links and other file systems are not followed. */
	(void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void temp_dir_remove(char *dir)
{
	temp_dir_delete(dir);
	free(dir);
}

/* Criterion ends a test's process by exit(3), also after a failed assertion. */
__attribute__((destructor)) static void delete_left(void)
{
	for (struct made *m = made; m < made + DIRS_MAX; m++)
		if (m->by == getpid())
			temp_dir_delete(m->path);
}
