// SPDX-License-Identifier: BSD-2-Clause
/* Verdicts kept between runs: see cache.h. */
#include "verify/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "probe/probe.h"
#include "verify/script.h"

#define MAGIC	     "pyprofd-verify"
#define CACHE_FORMAT 5u
#define TEXT_MAX     1024
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

/* What the verdict was about: the plan, the layout, the program that was run, the kernel, and by
 * which of its mechanisms. */
static uint64_t subject(const struct python *py, const struct plan *plan)
{
	struct fnv h = {UINT64_C(0xcbf29ce484222325)};
	struct utsname kernel = {0};
	enum probe_mechanism by;
	struct diag diag;

	if (probe_check(&by, &diag) == 0)
		mix(&h, &by, sizeof(by));
	if (uname(&kernel) == 0) {
		mix(&h, kernel.release, strlen(kernel.release));
		mix(&h, kernel.version, strlen(kernel.version));
	}
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
	python_build_id_hex(py, out);
	return 0;
}

/* Nobody but us (and root) may have put it there. */
static bool is_ours(int fd, mode_t type)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && !(st.st_mode & 022) &&
	       (st.st_uid == geteuid() || st.st_uid == 0) && (type != S_IFREG || st.st_nlink == 1);
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

/* What is kept, each by its name and in this order. */
struct kept {
	const char *name;
	uint32_t *at;
};

#define KEPT_MAX (8 + 2 * COST_KINDS)

static size_t kept_list(struct verify_result *v, uint32_t *known, struct kept ret[KEPT_MAX])
{
	static const char *const before[] = {"enter-before", "leave-before", "yield-before"};
	static const char *const after[] = {"enter-after", "leave-after", "yield-after"};
	const struct kept first[] = {
		{"events", &v->events},
		{"functions", &v->functions},
		{"calls", &v->calls},
		{"sites", &v->sites},
		{"event-ns", &v->event_ns},
		{"cost-known", known},
		{"gauge-ps", &v->cost.gauge_ps},
		{"drag", &v->cost.drag},
	};
	size_t n = sizeof(first) / sizeof(*first);

	memcpy(ret, first, sizeof(first));
	for (int k = 0; k < COST_KINDS; k++) {
		ret[n++] = (struct kept){before[k], &v->cost.before[k]};
		ret[n++] = (struct kept){after[k], &v->cost.after[k]};
	}
	return n;
}

static int parse(char *text, uint64_t want, struct verify_result *ret)
{
	struct verify_result v = {.verdict = VERIFY_RIGHT, .cached = true};
	struct kept list[KEPT_MAX];
	uint32_t known;
	size_t n = kept_list(&v, &known, list);
	uint64_t number;

	if (take_number(&text, MAGIC, &number) < 0 || number != CACHE_FORMAT ||
	    take_number(&text, "subject", &number) < 0 || number != want)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (take_number(&text, list[i].name, &number) < 0 || number > UINT32_MAX)
			return -EINVAL;
		*list[i].at = (uint32_t)number;
	}
	if (take_number(&text, "end", &number) < 0 || (text && *text))
		return -EINVAL;
	v.cost.known = known;
	*ret = v;
	return 0;
}

static size_t print(const struct verify_result *v, uint64_t about, char *out, size_t size)
{
	struct verify_result copy = *v;
	struct kept list[KEPT_MAX];
	uint32_t known = v->cost.known;
	size_t n = kept_list(&copy, &known, list);
	int at = snprintf(out, size, "%s %u\nsubject %llu\n", MAGIC, CACHE_FORMAT,
			  (unsigned long long)about);

	for (size_t i = 0; i < n; i++)
		at += snprintf(out + at, size - (size_t)at, "%s %u\n", list[i].name, *list[i].at);
	at += snprintf(out + at, size - (size_t)at, "end 0\n");
	return (size_t)at;
}

int cache_load(const struct python *py, const struct plan *plan, struct verify_result *ret)
{
	_cleanup_close_ int dir = open_dir(false), fd = -1;
	char name[2 * IMAGE_BUILD_ID_MAX + 8], text[TEXT_MAX];
	ssize_t n;

	if (dir < 0 || file_name(py, name) < 0)
		return -ENOENT;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || !is_ours(fd, S_IFREG))
		return -ENOENT;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0 || text[n - 1] != '\n' || memchr(text, 0, (size_t)n))
		return -ENOENT;
	text[n] = '\0';
	return parse(text, subject(py, plan), ret);
}

/* Written beside it, then renamed: a reader sees all of it or nothing. */
void cache_store(const struct python *py, const struct plan *plan, const struct verify_result *v)
{
	_cleanup_close_ int dir = open_dir(true), fd = -1;
	char name[2 * IMAGE_BUILD_ID_MAX + 8], temp[32], text[TEXT_MAX];
	size_t n;

	if (v->verdict != VERIFY_RIGHT || dir < 0 || file_name(py, name) < 0)
		return;
	n = print(v, subject(py, plan), text, sizeof(text));
	snprintf(temp, sizeof(temp), ".new-%d", (int)getpid());
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write(fd, text, n) != (ssize_t)n || renameat(dir, temp, dir, name) < 0)
		(void)unlinkat(dir, temp, 0);
}

struct cost cache_load_cost(const struct python *py, const struct plan *plan)
{
	struct verify_result v = {0};

	return cache_load(py, plan, &v) < 0 ? (struct cost){0} : v.cost;
}

void cache_store_cost(const struct python *py, const struct plan *plan, const struct cost *cost)
{
	struct verify_result v;

	if (!cost->known || cache_load(py, plan, &v) < 0)
		return;
	v.cost = *cost;
	cache_store(py, plan, &v);
}
