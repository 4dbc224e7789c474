// SPDX-License-Identifier: BSD-2-Clause
/* Self-test results kept between runs: see cache.h. */
#include "verify/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "probe/probe.h"
#include "verify/script.h"

#define MAGIC	     "pyprofd-verify"
#define CACHE_FORMAT 8u
#define TEXT_MAX     1024
#define CACHE_SYSTEM "/var/cache/pyprofd"
#define NAME_SIZE    64

/*
 * Identifies the entry for a target. A target chooses its file's build-id and bytes, and so the
 * plan, but not another user's id or inode. The fields are stored and compared, not hashed, because
 * a target could compute a collision with another file's hash.
 */
struct key {
	uint64_t user;					    /* user of the target */
	uint64_t owner, dev, ino, size, mtime_ns, ctime_ns; /* of the interpreter's file */
	uint64_t kernel; /* a hash of it and the probe mechanism */
};

#define KEY_FIELDS 8

struct fnv {
	uint64_t v;
};

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)

static void mix(struct fnv *h, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		h->v = (h->v ^ p[i]) * UINT64_C(0x100000001b3);
}

static uint64_t kernel_hash(void)
{
	struct fnv h = {FNV_BASIS};
	struct utsname kernel = {0};
	enum probe_mechanism by;
	struct diag diag;

	if (probe_check(&by, &diag) == 0)
		mix(&h, &by, sizeof(by));
	if (uname(&kernel) == 0) {
		mix(&h, kernel.release, strlen(kernel.release));
		mix(&h, kernel.version, strlen(kernel.version));
	}
	return h.v;
}

static uint64_t user_of(const struct verify_opts *o)
{
	return o->target ? o->target->identity.uid : geteuid();
}

static uint64_t ns_of(const struct statx_timestamp *t)
{
	return (uint64_t)t->tv_sec * UINT64_C(1000000000) + t->tv_nsec;
}

/* Uses the kernel's cached inode data, without asking a file system's server. -EPERM: the target is
 * a set-user-id program, which has no single user. */
static int key_of(const struct verify_opts *o, struct key *ret)
{
	const char *path = o->python->via[0] ? o->python->via : o->python->file;
	const unsigned int want = STATX_UID | STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME;
	struct statx st = {0};

	if (o->target && o->target->identity.mixed)
		return -EPERM;
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, want, &st) < 0)
		return -errno;
	if ((st.stx_mask & want) != want)
		return -EOPNOTSUPP;
	*ret = (struct key){
		.user = user_of(o),
		.owner = st.stx_uid,
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
		.size = st.stx_size,
		.mtime_ns = ns_of(&st.stx_mtime),
		.ctime_ns = ns_of(&st.stx_ctime),
		.kernel = kernel_hash(),
	};
	return 0;
}

/* One entry per user and inode: a changed file replaces its entry. */
static void file_name(const struct key *k, char out[NAME_SIZE])
{
	snprintf(out, NAME_SIZE, "%llu-%llx-%llx", (unsigned long long)k->user,
		 (unsigned long long)k->dev, (unsigned long long)k->ino);
}

/* A hash of what else the result depends on: plan, layout, and test program */
static uint64_t subject(const struct python *py, const struct plan *plan)
{
	struct fnv h = {FNV_BASIS};

	mix(&h, py->build_id, py->build_id_len);
	mix(&h, &py->layout.bpf, sizeof(py->layout.bpf));
	for (unsigned int i = 0; i < plan->nsites; i++) {
		const uint64_t site[2] = {plan->sites[i].offset, plan_cookie(&plan->sites[i], i)};

		mix(&h, site, sizeof(site));
	}
	for (unsigned int i = 0; i < plan->ngc; i++) {
		const uint64_t site[2] = {plan->gc[i].offset, plan_cookie(&plan->gc[i], i)};

		mix(&h, site, sizeof(site));
	}
	mix(&h, script_text, strlen(script_text));
	return h.v;
}

/* Only this user and root can have created or changed it. */
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

/* Parse "NAME NUMBER" and advance *rest. */
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

/* The stored fields, in this order */
struct kept {
	const char *name;
	uint32_t *at;
};

#define KEPT_MAX (7 + 2 * COST_KINDS)

/* The key's fields, likewise */
struct key_field {
	const char *name;
	uint64_t *at;
};

static void key_list(struct key *k, struct key_field ret[KEY_FIELDS])
{
	const struct key_field list[KEY_FIELDS] = {
		{"user", &k->user},	    {"owner", &k->owner},   {"dev", &k->dev},
		{"inode", &k->ino},	    {"size", &k->size},	    {"mtime-ns", &k->mtime_ns},
		{"ctime-ns", &k->ctime_ns}, {"kernel", &k->kernel},
	};

	memcpy(ret, list, sizeof(list));
}

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
		{"reference-ps", &v->cost.latency_ps},
	};
	size_t n = sizeof(first) / sizeof(*first);

	memcpy(ret, first, sizeof(first));
	for (int k = 0; k < COST_KINDS; k++) {
		ret[n++] = (struct kept){before[k], &v->cost.before[k]};
		ret[n++] = (struct kept){after[k], &v->cost.after[k]};
	}
	return n;
}

struct entry {
	struct key key;
	uint64_t subject;
	struct verify_result result;
};

static int parse_head(char **text, struct entry *ret)
{
	struct key_field fields[KEY_FIELDS];
	uint64_t number;

	key_list(&ret->key, fields);
	if (take_number(text, MAGIC, &number) < 0 || number != CACHE_FORMAT)
		return -EINVAL;
	for (size_t i = 0; i < KEY_FIELDS; i++)
		if (take_number(text, fields[i].name, fields[i].at) < 0)
			return -EINVAL;
	return take_number(text, "subject", &ret->subject);
}

static int parse(char *text, struct entry *ret)
{
	struct verify_result v = {.verdict = VERIFY_RIGHT, .cached = true};
	struct kept list[KEPT_MAX];
	uint32_t known;
	size_t n = kept_list(&v, &known, list);
	uint64_t number;

	if (parse_head(&text, ret) < 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (take_number(&text, list[i].name, &number) < 0 || number > UINT32_MAX)
			return -EINVAL;
		*list[i].at = (uint32_t)number;
	}
	if (take_number(&text, "end", &number) < 0 || (text && *text))
		return -EINVAL;
	v.cost.known = known;
	ret->result = v;
	return 0;
}

static size_t print(const struct verify_result *v, const struct key *key, uint64_t about, char *out,
		    size_t size)
{
	struct verify_result copy = *v;
	struct key key_copy = *key;
	struct kept list[KEPT_MAX];
	uint32_t known = v->cost.known;
	size_t n = kept_list(&copy, &known, list);
	struct key_field fields[KEY_FIELDS];
	int at = snprintf(out, size, "%s %u\n", MAGIC, CACHE_FORMAT);

	key_list(&key_copy, fields);
	for (size_t i = 0; i < KEY_FIELDS; i++)
		at += snprintf(out + at, size - (size_t)at, "%s %llu\n", fields[i].name,
			       (unsigned long long)*fields[i].at);
	at += snprintf(out + at, size - (size_t)at, "subject %llu\n", (unsigned long long)about);
	for (size_t i = 0; i < n; i++)
		at += snprintf(out + at, size - (size_t)at, "%s %u\n", list[i].name, *list[i].at);
	at += snprintf(out + at, size - (size_t)at, "end 0\n");
	return (size_t)at;
}

/* -ENOENT: no build-id, or the file cannot be identified. */
static int identify(const struct verify_opts *o, struct key *key, char name[NAME_SIZE])
{
	if (!o->python->build_id_len || key_of(o, key) < 0)
		return -ENOENT;
	file_name(key, name);
	return 0;
}

static int read_entry(int dir, const char *name, struct entry *ret)
{
	_cleanup_close_ int fd = -1;
	char text[TEXT_MAX];
	ssize_t n;

	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || !is_ours(fd, S_IFREG))
		return -ENOENT;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0 || text[n - 1] != '\n' || memchr(text, 0, (size_t)n))
		return -ENOENT;
	text[n] = '\0';
	return parse(text, ret);
}

int cache_load(const struct verify_opts *o, struct verify_result *ret)
{
	_cleanup_close_ int dir = open_dir(false);
	char name[NAME_SIZE];
	struct key key = {0};
	struct entry e = {0};
	int r;

	if (dir < 0 || identify(o, &key, name) < 0)
		return -ENOENT;
	r = read_entry(dir, name, &e);
	if (r < 0)
		return r;
	if (memcmp(&e.key, &key, sizeof(key)) != 0 || e.subject != subject(o->python, o->plan))
		return -EINVAL;
	*ret = e.result;
	return 0;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static bool is_of_user(const char *name, uint64_t user)
{
	char *end;

	return *name >= '0' && *name <= '9' && strtoull(name, &end, 10) == user && *end == '-';
}

/* NULL: impossible */
static DIR *list(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		close(fd);
	return d;
}

/*
 * Keep at most CACHE_ENTRIES entries: remove the oldest one, of the same user if possible, so that
 * a user with many interpreters does not displace other users' entries.
 */
static void make_room(int dir, uint64_t user)
{
	char oldest[NAME_MAX + 1] = "";
	struct timespec oldest_at = {0};
	bool mine = false;
	unsigned int n = 0;
	DIR *d = list(dir);

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		bool same = is_of_user(e->d_name, user);
		struct stat st;

		if (e->d_name[0] == '.' || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		n++;
		if (*oldest && (same != mine ? mine : !is_before(&st.st_mtim, &oldest_at)))
			continue;
		snprintf(oldest, sizeof(oldest), "%s", e->d_name);
		oldest_at = st.st_mtim;
		mine = same;
	}
	if (n >= CACHE_ENTRIES)
		(void)unlinkat(dir, oldest, 0);
	if (d)
		closedir(d);
}

/* Write to another file and rename it, so that readers see complete entries only. */
void cache_store(const struct verify_opts *o, const struct verify_result *v)
{
	_cleanup_close_ int dir = open_dir(true), fd = -1;
	char name[NAME_SIZE], temp[32], text[TEXT_MAX];
	struct key key = {0};
	size_t n;

	if (v->verdict != VERIFY_RIGHT || dir < 0 || identify(o, &key, name) < 0)
		return;
	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		make_room(dir, key.user);
	n = print(v, &key, subject(o->python, o->plan), text, sizeof(text));
	snprintf(temp, sizeof(temp), ".new-%d", (int)getpid());
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write(fd, text, n) != (ssize_t)n || renameat(dir, temp, dir, name) < 0)
		(void)unlinkat(dir, temp, 0);
}

struct cost cache_load_cost(const struct verify_opts *o)
{
	struct verify_result v = {0};

	return cache_load(o, &v) < 0 ? (struct cost){0} : v.cost;
}

/*
 * Other users can disturb what is measured for them, as it runs as their user, and choose what
 * their own interpreters do.
 */
static bool is_trusted(const struct key *k, const struct verify_opts *o)
{
	const bool mixed = o->target && o->target->identity.mixed;

	return (k->user == 0 && k->owner == 0) || (!mixed && k->user == user_of(o));
}

struct cost cache_load_other_cost(const struct verify_opts *o)
{
	_cleanup_close_ int dir = open_dir(false);
	const uint64_t kernel = kernel_hash();
	struct timespec newest_at = {0};
	struct cost newest = {0};
	DIR *d = dir < 0 ? NULL : list(dir);

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		struct entry entry = {0};
		struct stat st;

		if (e->d_name[0] == '.' || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    is_before(&st.st_mtim, &newest_at) || read_entry(dir, e->d_name, &entry) < 0 ||
		    !entry.result.cost.known || entry.key.kernel != kernel ||
		    !is_trusted(&entry.key, o))
			continue;
		newest_at = st.st_mtim;
		newest = entry.result.cost;
	}
	if (d)
		closedir(d);
	return newest;
}

void cache_store_cost(const struct verify_opts *o, const struct cost *cost)
{
	struct verify_result v;

	if (!cost->known || cache_load(o, &v) < 0)
		return;
	v.cost = *cost;
	cache_store(o, &v);
}
