/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main() for a fuzzer without libFuzzer: runs it on the empty input and on each file that the
 * command line names, directly or in a directory. Missing directories count as empty.
 */
#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, size_t size)
{
	_cleanup_fclose_ FILE *f = fopen(path, "rb");
	_cleanup_free_ uint8_t *data = malloc(size ? size : 1); /* exact: ASan sees overruns */

	if (!f || !data || fread(data, 1, size, f) != size) {
		fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
		return -EIO;
	}
	LLVMFuzzerTestOneInput(data, size);
	return 0;
}

static int replay(const char *path, unsigned int *count)
{
	struct stat st;
	struct dirent *e;
	DIR *dir;
	int r = 0;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode)) {
		(*count)++;
		return replay_file(path, (size_t)st.st_size);
	}
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (r == 0 && (e = readdir(dir))) {
		char child[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(child, sizeof(child), "%s/%s", path, e->d_name);
		r = replay(child, count);
	}
	closedir(dir);
	return r;
}

int main(int argc, char **argv)
{
	unsigned int count = 0;
	int r = 0;

	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc && r == 0; i++)
		r = replay(argv[i], &count);
	printf("%u inputs replayed\n", count);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
