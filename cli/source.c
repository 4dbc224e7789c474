// SPDX-License-Identifier: BSD-2-Clause
/* Source files of a profile: see source.h. */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/helper.h"

#define FILE_MAX   ((size_t)16 << 20)
#define DEADLINE_S 5
#define NOBODY	   65534

/* Whose file it is, and where. */
struct place {
	uid_t uid;
	gid_t gid;
	int dir;	   /* where absolute names begin; -1: "/" */
	int cwd;	   /* where relative names begin; -1: unknown */
	uint64_t since_ns; /* Unix time when the target was first seen; 0: unknown */
};

struct source {
	struct format_source format;
	struct place place;
	char *filename, *text; /* the last file */
	size_t size;
	char note[160];
	bool has_note;
};

/* What the child process sends before the text. */
struct answer {
	int32_t err; /* errno; 0: the text follows */
	uint32_t pad;
	uint64_t modified_ns;
};

/* ---- where to read ---- */

/* The second of the numbers in a line of /proc/PID/status: the effective one. */
static bool read_id(const char *line, const char *name, unsigned long *ret)
{
	const char *p = strncmp(line, name, strlen(name)) == 0 ? strchr(line, '\t') : NULL;

	p = p ? strchr(p + 1, '\t') : NULL;
	if (p)
		*ret = strtoul(p + 1, NULL, 10);
	return p;
}

static bool read_ids(int proc, struct place *p)
{
	int fd = openat(proc, "status", O_RDONLY | O_CLOEXEC);
	_cleanup_fclose_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned long uid = 0, gid = 0;
	bool has_uid = false, has_gid = false;
	char line[256];

	if (fd >= 0 && !f)
		(void)close(fd);
	while (f && fgets(line, sizeof(line), f)) {
		has_uid |= read_id(line, "Uid:", &uid);
		has_gid |= read_id(line, "Gid:", &gid);
	}
	p->uid = (uid_t)uid;
	p->gid = (gid_t)gid;
	return has_uid && has_gid;
}

/* The process started before the target was first seen: its pid was not reused since. */
static bool is_as_old(int proc, const struct snapshot_target *t)
{
	char stat[1024] = "", *p;
	_cleanup_close_ int fd = openat(proc, "stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	struct timespec boot, now;
	uint64_t started, now_ns;

	p = n > 0 ? strrchr(stat, ')') : NULL;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return false;
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u - (uint64_t)boot.tv_sec * 1000000000u;
	started = strtoull(p + 1, NULL, 10) * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	/* tv_nsec is left out, so allow a second. */
	return now_ns + started < t->start_unix_ns + 1000000000u;
}

static bool find_process(const struct snapshot_target *t, struct place *p)
{
	char path[32];
	_cleanup_close_ int proc = -1;

	snprintf(path, sizeof(path), "/proc/%" PRIu32, t->pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0 || !read_ids(proc, p) || !is_as_old(proc, t))
		return false;
	p->dir = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->dir < 0)
		return false;
	p->cwd = openat(proc, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	p->since_ns = t->start_unix_ns;
	return true;
}

/* The files of all targets are those of the first live target: a profile is of one program. */
static void find_place(struct place *p, const struct snapshot *s)
{
	*p = (struct place){.uid = geteuid() ? geteuid() : NOBODY, .dir = -1, .cwd = -1};
	p->gid = geteuid() ? getegid() : NOBODY;
	for (uint32_t i = 0; s && i < s->ntargets; i++) {
		struct place found = *p;

		if (!s->targets[i].pid || !s->targets[i].alive ||
		    !find_process(&s->targets[i], &found))
			continue;
		*p = found;
		return;
	}
}

/* ---- the child process ---- */

static int become(const struct place *p)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(p->gid, p->gid, p->gid) < 0 ||
	    setresuid(p->uid, p->uid, p->uid) < 0)
		return -errno;
	return 0;
}

static int open_file(const struct place *p, const char *name)
{
	const bool absolute = name[0] == '/';
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_NO_MAGICLINKS | (absolute ? RESOLVE_IN_ROOT : RESOLVE_BENEATH),
	};
	int dir = absolute ? p->dir : p->cwd, fd;

	/* The process ends soon, so the directory need not be closed. */
	if (dir < 0)
		dir = open(absolute ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int check_file(int fd, struct answer *a)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((size_t)st.st_size > FILE_MAX)
		return -EFBIG;
	a->modified_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	return 0;
}

static bool send_all(int out, const void *data, size_t n)
{
	for (const char *p = data; n;) {
		ssize_t k = write(out, p, n);

		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

/* What the child process is started with, besides the directories */
struct job {
	struct place place;
	const char *name;
};

static void run_child(struct helper_side *side)
{
	struct job *job = side->ctx;
	struct place *p = &job->place;
	struct answer a = {0};
	char buf[65536];
	size_t left = FILE_MAX;
	const int out = side->chan;
	ssize_t n;
	int fd, r = become(p);

	p->dir = side->fds[0];
	p->cwd = side->fds[1];

	/* Not before: a change of user resets both. The user's processes must not reach this one. */
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != side->parent)
		_exit(1);
	fd = r < 0 ? r : open_file(p, job->name);
	r = fd < 0 ? fd : check_file(fd, &a);
	a.err = -r;
	if (!send_all(out, &a, sizeof(a)) || r < 0)
		_exit(0);
	while (left && (n = read(fd, buf, left < sizeof(buf) ? left : sizeof(buf))) > 0) {
		if (!send_all(out, buf, (size_t)n))
			break;
		left -= (size_t)n;
	}
}

/* ---- reading ---- */

/* Reads to the end. Returns 0, -ETIMEDOUT, or another error. */
static int receive(int fd, char **ret, size_t *ret_n)
{
	const uint64_t end = clock_monotonic_ns() + DEADLINE_S * 1000000000ull;
	const size_t room = sizeof(struct answer) + FILE_MAX;
	_cleanup_free_ char *data = malloc(room);
	size_t n = 0;

	while (data && n < room) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_monotonic_ns();
		ssize_t k;

		if (now >= end || poll(&p, 1, (int)((end - now) / 1000000) + 1) <= 0)
			return -ETIMEDOUT;
		k = read(fd, data + n, room - n);
		if (k < 0)
			return -errno;
		if (!k)
			break;
		n += (size_t)k;
	}
	if (!data)
		return -ENOMEM;
	*ret = TAKE_PTR(data);
	*ret_n = n;
	return 0;
}

static int ask_child(struct source *src, const char *name, char **ret, size_t *ret_n)
{
	struct job job = {.place = src->place, .name = name};
	const struct helper_opts ho = {.fds = {src->place.dir, src->place.cwd}, .nfds = 2};
	struct helper h;
	int r = helper_start(&ho, run_child, &job, &h);

	if (r < 0)
		return r;
	r = receive(h.fd, ret, ret_n);
	/* A process that a file system blocks cannot be waited for. */
	helper_end(&h);
	return r;
}

static void note(struct source *src, int err)
{
	const char *why = strerror(err);

	src->has_note = true;
	if (err == EFBIG)
		why = "larger than 16 MiB";
	if (err == EINVAL)
		why = "not a regular file";
	if (err == EACCES && src->place.uid != geteuid())
		snprintf(src->note, sizeof(src->note), "no source: %s (read as user %u)", why,
			 (unsigned int)src->place.uid);
	else
		snprintf(src->note, sizeof(src->note), "no source: %s", why);
}

static void take(struct source *src, char *data, size_t n)
{
	struct answer a;

	if (n < sizeof(a)) {
		note(src, EIO);
		return;
	}
	memcpy(&a, data, sizeof(a));
	if (a.err) {
		note(src, a.err);
		return;
	}
	src->size = n - sizeof(a);
	src->text = malloc(src->size + 1);
	if (src->text)
		memcpy(src->text, data + sizeof(a), src->size);
	src->has_note = src->place.since_ns && a.modified_ns > src->place.since_ns;
	if (src->has_note)
		snprintf(src->note, sizeof(src->note),
			 "the file was modified since: lines may differ");
}

static void read_file(struct source *src, const char *filename)
{
	_cleanup_free_ char *data = NULL;
	size_t n = 0;
	int r;

	if (!filename[0] || filename[0] == '<') {
		note(src, EINVAL);
		return;
	}
	r = ask_child(src, filename, &data, &n);
	if (r < 0)
		note(src, -r);
	else
		take(src, data, n);
}

static const char *source_text(void *ctx, const char *filename, size_t *ret_size,
			       const char **ret_note)
{
	struct source *src = ctx;

	if (!src->filename || strcmp(src->filename, filename) != 0) {
		free(src->text);
		free(src->filename);
		src->text = NULL;
		src->has_note = false;
		src->filename = strdup(filename);
		read_file(src, filename);
	}
	*ret_note = src->has_note ? src->note : NULL;
	*ret_size = src->text ? src->size : 0;
	return src->text;
}

struct source *source_new(const struct snapshot *s, bool live)
{
	struct source *src = calloc(1, sizeof(*src));

	if (!src)
		return NULL;
	src->format = (struct format_source){source_text, src};
	find_place(&src->place, live ? s : NULL);
	return src;
}

void source_free(struct source *src)
{
	if (!src)
		return;
	if (src->place.dir >= 0)
		(void)close(src->place.dir);
	if (src->place.cwd >= 0)
		(void)close(src->place.cwd);
	free(src->filename);
	free(src->text);
	free(src);
}

const struct format_source *source_format(struct source *src)
{
	return &src->format;
}
