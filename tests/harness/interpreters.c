// SPDX-License-Identifier: BSD-2-Clause
/* Finding real interpreters: see interpreters.h. */
#include "harness/interpreters.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

static void add(struct interpreter *v, size_t *n, const char *exe)
{
	const char *base = strrchr(exe, '/') + 1;
	struct interpreter it = {0};
	char rest[16] = "";

	if (*n == INTERPRETERS_MAX ||
	    sscanf(base, "python%d.%d%15s", &it.major, &it.minor, rest) < 2 ||
	    (*rest && strcmp(rest, "-embedded") != 0 && strcmp(rest, "t") != 0))
		return;
	if (strcmp(rest, "t") == 0)
		it.abi = LAYOUT_ABI_FREE_THREADED;
	if (access(exe, X_OK))
		return;
	snprintf(it.exe, sizeof(it.exe), "%s", exe);
	snprintf(it.file, sizeof(it.file), "%.*s/../lib/libpython%d.%d%s.so.1.0",
		 (int)(base - exe - 1), exe, it.major, it.minor,
		 it.major == 3 && it.minor < 8 ? "m" : "");
	/* A launcher of tests/fetch-interpreters.sh */
	if (*rest == '-')
		snprintf(it.file, sizeof(it.file),
			 "%.*s/../usr/lib/x86_64-linux-gnu/libpython%d.%d.so.1.0",
			 (int)(base - exe - 1), exe, it.major, it.minor);
	if (access(it.file, R_OK))
		snprintf(it.file, sizeof(it.file), "%.*s/../usr/bin/%s", (int)(base - exe - 1), exe,
			 base);
	if (strncmp(exe, "/usr/bin/", 9) == 0 || access(it.file, R_OK))
		snprintf(it.file, sizeof(it.file), "%s", exe);
	v[(*n)++] = it;
}

static void add_all(struct interpreter *v, size_t *n, const char *pattern)
{
	glob_t g;

	if (glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++)
			add(v, n, g.gl_pathv[i]);
	globfree(&g);
}

static int by_version(const void *a, const void *b)
{
	const struct interpreter *x = a, *y = b;

	if (x->major != y->major)
		return x->major - y->major;
	return x->minor != y->minor ? x->minor - y->minor : strcmp(x->exe, y->exe);
}

/* Add interpreters from the environment variable: paths separated by blanks or newlines. */
static void add_listed(struct interpreter *v, size_t *n, const char *list)
{
	char path[512];
	size_t len;

	for (list += strspn(list, " \n"); *list; list += len + strspn(list + len, " \n")) {
		len = strcspn(list, " \n");
		snprintf(path, sizeof(path), "%.*s", (int)len, list);
		if (strchr(path, '/'))
			add(v, n, path);
	}
}

static void require(const struct interpreter *v, size_t n)
{
	const char *what = getenv("PYPROF_TEST_REQUIRE");
	unsigned int have = 0;

	if (getenv("PYPROF_INTERPRETERS")) {
		cr_assert(n, "no interpreter of PYPROF_INTERPRETERS exists");
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (v[i].major == 3 && v[i].minor < 32)
			have |= 1u << v[i].minor;
	if (what && strstr(what, "python"))
		for (int minor = 10; minor <= 13; minor++)
			cr_assert(have >> minor & 1, "python3.%d is required and was not found",
				  minor);
	if (n == 0)
		cr_skip_test("needs a python3 in ~/.pyenv/versions or /usr/bin");
}

size_t interpreters_find(struct interpreter v[INTERPRETERS_MAX])
{
	const char *home = getenv("HOME"), *list = getenv("PYPROF_INTERPRETERS");
	char pattern[512];
	size_t n = 0;

	snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/*/bin/python3.*", home ? home : "");
	if (list) {
		add_listed(v, &n, list);
	} else {
		add_all(v, &n, pattern);
		add_all(v, &n, "/usr/bin/python3.*");
	}
	qsort(v, n, sizeof(*v), by_version);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "using %s\n", v[i].file);
	require(v, n);
	return n;
}

size_t interpreters_of_models(struct interpreter v[INTERPRETERS_MAX])
{
	struct interpreter all[INTERPRETERS_MAX];
	size_t n = interpreters_find(all), kept = 0;
	unsigned int models = 0;

	for (size_t i = n; i-- > 0;) {
		const struct layout *l = interpreter_layout(&all[i]);

		if (!l || models & 1u << l->model)
			continue;
		models |= 1u << l->model;
		v[kept++] = all[i];
	}
	return kept;
}

const struct layout *interpreter_layout(const struct interpreter *it)
{
	return layout_find_abi((unsigned int)it->major, (unsigned int)it->minor, it->abi);
}

uint8_t *interpreter_read(const struct interpreter *it, size_t *size)
{
	FILE *f = fopen(it->file, "re");
	uint8_t *data;

	cr_assert(f, "%s", it->file);
	assert_ok(fseek(f, 0, SEEK_END));
	*size = (size_t)ftell(f);
	rewind(f);
	data = malloc(*size);
	cr_assert(data && fread(data, 1, *size, f) == *size, "%s", it->file);
	fclose(f);
	return data;
}

pid_t interpreter_start(const struct interpreter *it, const char *script, int *out)
{
	int fds[2];
	pid_t pid;

	assert_ok(pipe2(fds, O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 1);
		execl(it->exe, it->exe, "-u", "-c", script, (char *)NULL);
		_exit(127);
	}
	cr_assert(pid > 0);
	close(fds[1]);
	*out = fds[0];
	return pid;
}

void interpreter_line(int out, char *line, size_t size)
{
	size_t n = 0;

	memset(line, 0, size);
	while (n + 1 < size && read(out, line + n, 1) == 1 && line[n] != '\n')
		n++;
	cr_assert(line[n] == '\n', "the interpreter ended");
	line[n] = 0;
}

void interpreter_end(pid_t pid, int out)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(out);
}
