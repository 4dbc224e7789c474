// SPDX-License-Identifier: BSD-2-Clause
/* Verdicts kept between runs: see cache.h. */
#include "verify/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "verify/script.h"

#define CACHE_FORMAT 1u
#define CACHE_SYSTEM "/var/cache/pyprofd"

struct fnv {
	uint64_t v;
};

static void mix(struct fnv *h, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		h->v = (h->v ^ p[i]) * UINT64_C(0x100000001b3);
}

/* What the verdict was about: the plan, the layout, and the program that was run. */
static uint64_t subject(const struct python *py, const struct plan *plan)
{
	struct fnv h = {UINT64_C(0xcbf29ce484222325)};

	mix(&h, py->build_id, py->build_id_len);
	mix(&h, &py->layout.bpf, sizeof(py->layout.bpf));
	for (unsigned int i = 0; i < plan->nsites; i++) {
		const uint64_t site[2] = {plan->sites[i].offset, plan_cookie(&plan->sites[i], i)};

		mix(&h, site, sizeof(site));
	}
	mix(&h, script_text, strlen(script_text));
	return h.v;
}

static int file_name(const struct python *py, char out[2 * IMAGE_BUILD_ID_MAX + 8])
{
	if (!py->build_id_len)
		return -ENOENT;
	for (size_t i = 0; i < py->build_id_len; i++)
		snprintf(out + 2 * i, 3, "%02x", py->build_id[i]);
	return 0;
}

/* Nobody but us (and root) may have put it there. */
static bool is_ours(int fd, mode_t type)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && !(st.st_mode & 022) &&
	       (st.st_uid == geteuid() || st.st_uid == 0);
}

static int open_dir(bool make)
{
	const char *cache = secure_getenv("CACHE_DIRECTORY"),
		   *xdg = secure_getenv("XDG_CACHE_HOME");
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	if (cache && *cache == '/' && !strchr(cache, ':'))
		snprintf(path, sizeof(path), "%s", cache);
	else if (xdg && *xdg == '/')
		snprintf(path, sizeof(path), "%s/pyprofd", xdg);
	else
		snprintf(path, sizeof(path), CACHE_SYSTEM);
	if (make)
		(void)mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return is_ours(fd, S_IFDIR) ? TAKE_FD(fd) : -EPERM;
}

/* "NAME NUMBER", the next of them; moves on. */
static int take_number(char **rest, const char *name, uint64_t *ret)
{
	char *word = strsep(rest, " "), *number = *rest ? strsep(rest, " \n") : NULL;
	char *end;

	if (!word || !number || strcmp(word, name) != 0 || *number < '0' || *number > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtoull(number, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

static int parse(char *text, uint64_t want, struct verify_result *ret)
{
	static const char *const names[] = {"pyprofd-verify", "subject",  "functions",
					    "calls",	      "event-ns", "end"};
	uint64_t v[sizeof(names) / sizeof(*names)];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (take_number(&text, names[i], &v[i]) < 0)
			return -EINVAL;
	if (v[0] != CACHE_FORMAT || v[1] != want || v[2] > UINT32_MAX || v[3] > UINT32_MAX ||
	    v[4] > UINT32_MAX)
		return -EINVAL;
	*ret = (struct verify_result){
		.verdict = VERIFY_RIGHT,
		.cached = true,
		.functions = (uint32_t)v[2],
		.calls = (uint32_t)v[3],
		.event_ns = (uint32_t)v[4],
	};
	return 0;
}

int cache_load(const struct python *py, const struct plan *plan, struct verify_result *ret)
{
	_cleanup_close_ int dir = open_dir(false), fd = -1;
	char name[2 * IMAGE_BUILD_ID_MAX + 8], text[512];
	ssize_t n;

	if (dir < 0 || file_name(py, name) < 0)
		return -ENOENT;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || !is_ours(fd, S_IFREG))
		return -ENOENT;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ENOENT;
	text[n] = '\0';
	return parse(text, subject(py, plan), ret);
}

/* Written beside it, then renamed: a reader sees all of it or nothing. */
void cache_store(const struct python *py, const struct plan *plan, const struct verify_result *v)
{
	_cleanup_close_ int dir = open_dir(true), fd = -1;
	char name[2 * IMAGE_BUILD_ID_MAX + 8], temp[32], text[512];
	int n;

	if (v->verdict != VERIFY_RIGHT || dir < 0 || file_name(py, name) < 0)
		return;
	n = snprintf(
		text, sizeof(text),
		"pyprofd-verify %u\nsubject %llu\nfunctions %u\ncalls %u\nevent-ns %u\nend 0\n",
		CACHE_FORMAT, (unsigned long long)subject(py, plan), v->functions, v->calls,
		v->event_ns);
	snprintf(temp, sizeof(temp), ".new-%d", (int)getpid());
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write(fd, text, (size_t)n) != n || renameat(dir, temp, dir, name) < 0)
		(void)unlinkat(dir, temp, 0);
}
