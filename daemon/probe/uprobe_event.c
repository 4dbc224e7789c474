// SPDX-License-Identifier: BSD-2-Clause
/*
 * The uprobe event: see uprobe_event.h. The kernel's implementation is in
 * kernel/trace/trace_uprobe.c. All probes of an event share a filter, which compares the memory map
 * of the process that hits them with that of the perf event's process, and removes the breakpoint
 * from other processes. Programs run before the perf event itself is processed, so it stays
 * disabled and costs nothing at context switches.
 */
#include "probe/uprobe_event.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "target/deadline.h"
#include "target/proc.h"
#include "target/target.h"

#define PREFIX	   "p:pyprofd_"
#define EVENTS	   "uprobe_events"
#define EVENTS_MAX (4u << 20)

/* The init pid namespace always has this inode: PROC_PID_INIT_INO of linux/proc_ns.h. */
#define INIT_PID_NS 0xeffffffcul

/* ---- tracefs ----------------------------------------------------------------------------- */

/* Creates a detached mount, because tracefs is often not mounted or read-only. */
static int mount_tracefs(void)
{
	_cleanup_close_ int fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static int open_events(int tracefs, int flags)
{
	int fd = openat(tracefs, EVENTS, flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Returns a directory in which events can be defined. */
static int open_tracefs(void)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	_cleanup_close_ int own = -1, events = -1;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		_cleanup_close_ int dir = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		_cleanup_close_ int there = dir < 0 ? -1 : open_events(dir, O_WRONLY);

		if (there >= 0)
			return TAKE_FD(dir);
	}
	own = mount_tracefs();
	if (own < 0)
		return own;
	events = open_events(own, O_WRONLY);
	if (events < 0)
		return events == -ENOENT ? -ENODEV : events;
	return TAKE_FD(own);
}

int uprobe_event_possible(void)
{
	_cleanup_close_ int dir = open_tracefs();

	return dir < 0 ? dir : 0;
}

/* Commands are appended: opening without O_APPEND would remove the events of all users. */
static int command(int tracefs, const char *text)
{
	_cleanup_close_ int fd = open_events(tracefs, O_WRONLY | O_APPEND);
	size_t n = strlen(text);

	if (fd < 0)
		return fd;
	return write(fd, text, n) == (ssize_t)n ? 0 : -errno;
}

static int undefine(int tracefs, const char *name)
{
	char text[80];

	snprintf(text, sizeof(text), "-:%s", name);
	return command(tracefs, text);
}

/* ---- owners of definitions --------------------------------------------------------------- */

static int find_pid_ns(const char *proc, uint64_t *ret)
{
	struct target_file file;
	char path[300];
	int r;

	snprintf(path, sizeof(path), "/proc/%s/ns/pid", proc);
	r = target_file_of(path, &file);
	*ret = r == 0 ? file.ino : 0;
	return r;
}

static uint64_t pid_ns_of(const char *proc)
{
	uint64_t ns;

	(void)find_pid_ns(proc, &ns);
	return ns;
}

static int myself(struct uprobe_event_maker *ret)
{
	struct proc_stat st;
	int r = proc_stat_read(AT_FDCWD, "/proc/self/stat", &st);

	if (r < 0)
		return r;
	*ret = (struct uprobe_event_maker){pid_ns_of("self"), getpid(), st.starttime};
	return 0;
}

int uprobe_event_name(char name[64])
{
	static unsigned int serial;
	struct uprobe_event_maker me;
	int r = myself(&me);

	if (r < 0)
		return r;
	snprintf(name, 64, "pyprofd_%lx_%x_%llx/s%u", me.pid_ns, (unsigned int)me.pid,
		 (unsigned long long)me.starttime, serial++);
	return 0;
}

/* Reads a hexadecimal number and the character after it, and advances *p. */
static int take_hex(const char **p, char end, uint64_t *ret)
{
	char *rest;

	errno = 0;
	*ret = strtoull(*p, &rest, 16);
	if (errno || rest == *p || *rest != end)
		return -EINVAL;
	*p = rest + 1;
	return 0;
}

int uprobe_event_parse(const char *line, char name[64], struct uprobe_event_maker *ret)
{
	const char *p = line + sizeof(PREFIX) - 1, *start = line + 2;
	uint64_t ns, pid, time;
	size_t n;

	if (strncmp(line, PREFIX, sizeof(PREFIX) - 1) != 0)
		return -EINVAL;
	if (take_hex(&p, '_', &ns) || take_hex(&p, '_', &pid) || take_hex(&p, '/', &time))
		return -EINVAL;
	n = strcspn(start, " \n");
	if (start[n] != ' ' || n >= 64 || !pid || pid > INT32_MAX)
		return -EINVAL;
	memcpy(name, start, n);
	name[n] = '\0';
	*ret = (struct uprobe_event_maker){ns, (pid_t)pid, time};
	return 0;
}

/* Only a process that sees all processes can determine that a namespace is empty. */
static bool ns_is_empty(uint64_t ns)
{
	DIR *dir;
	struct dirent *e;
	bool found = false;

	if (pid_ns_of("self") != INIT_PID_NS)
		return false;
	dir = opendir("/proc");
	if (!dir)
		return false;
	while (!found && (e = readdir(dir))) {
		uint64_t its;

		if (*e->d_name < '1' || *e->d_name > '9')
			continue;
		/* If a process cannot be examined, assume that it is in the namespace. */
		found = deadline_missed(find_pid_ns(e->d_name, &its)) || its == ns;
	}
	closedir(dir);
	return !found;
}

static bool has_died(const struct uprobe_event_maker *m)
{
	struct proc_stat st;
	int r;

	if (m->pid_ns != pid_ns_of("self"))
		return ns_is_empty(m->pid_ns);
	r = target_stat_read(m->pid, &st);
	return r == -ESRCH || (r == 0 && (st.starttime != m->starttime || st.state == 'Z'));
}

/* A definition in use cannot be removed, so a wrong guess about its process is harmless. */
static void clean(int tracefs)
{
	_cleanup_free_ char *text = NULL;
	char name[64], last[64] = "";
	struct uprobe_event_maker maker;
	char *rest, *line;

	if (proc_read(tracefs, EVENTS, EVENTS_MAX, &text, NULL) < 0)
		return;
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		/* There is one line per probe. */
		if (uprobe_event_parse(line, name, &maker) || strcmp(name, last) == 0)
			continue;
		memcpy(last, name, sizeof(last));
		if (has_died(&maker))
			(void)undefine(tracefs, name);
	}
}

/* ---- defining and opening ---------------------------------------------------------------- */

static int define(int tracefs, const char *name, const struct uprobe_event_opts *o)
{
	char text[512];

	for (uint32_t i = 0; i < o->n; i++) {
		int n = snprintf(text, sizeof(text), "p:%s %s:0x%llx", name, o->path,
				 (unsigned long long)o->offsets[i]);
		int r = n < (int)sizeof(text) ? command(tracefs, text) : -ENAMETOOLONG;

		if (r < 0) {
			(void)undefine(tracefs, name);
			return r;
		}
	}
	return 0;
}

static int read_id(int tracefs, const char *name, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	char path[96];
	int r;

	snprintf(path, sizeof(path), "events/%s/id", name);
	r = proc_read(tracefs, path, 64, &text, NULL);
	if (r < 0)
		return r;
	*ret = strtoull(text, NULL, 10);
	return *ret ? 0 : -EIO;
}

/* Opening the event inserts the probes; the program runs after it has been set. */
static int open_perf(int tracefs, const char *name, const struct uprobe_event_opts *o)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.disabled = 1,
	};
	_cleanup_close_ int fd = -1;
	uint64_t id = 0;
	int r = read_id(tracefs, name, &id);

	if (r < 0)
		return r;
	attr.config = id;
	fd = (int)syscall(SYS_perf_event_open, &attr, o->pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, o->prog_fd) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int uprobe_event_open(const struct uprobe_event_opts *o, struct uprobe_event *ret)
{
	_cleanup_close_ int tracefs = open_tracefs();
	struct uprobe_event e = {.perf = -1};
	int r;

	if (tracefs < 0)
		return tracefs;
	clean(tracefs);
	snprintf(e.name, sizeof(e.name), "%s", o->name);
	r = define(tracefs, e.name, o);
	if (r < 0)
		return r;
	e.perf = open_perf(tracefs, e.name, o);
	if (e.perf < 0) {
		(void)undefine(tracefs, e.name);
		return e.perf;
	}
	e.tracefs = TAKE_FD(tracefs);
	*ret = e;
	return 0;
}

/* Other processes may hold the event briefly, for example to read its description. */
#define UNDEFINE_TRIES	  50u
#define UNDEFINE_PAUSE_NS 10000000

void uprobe_event_close(struct uprobe_event *e)
{
	const struct timespec pause = {.tv_nsec = UNDEFINE_PAUSE_NS};

	close(TAKE_FD(e->perf));
	for (unsigned int i = 0; i < UNDEFINE_TRIES; i++) {
		if (undefine(e->tracefs, e->name) != -EBUSY)
			break;
		(void)nanosleep(&pause, NULL);
	}
	close(TAKE_FD(e->tracefs));
}
