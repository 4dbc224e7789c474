/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process, as the operating system shows it: who it is, what it maps, when it ends. Knows
 * nothing of Python.
 */
#ifndef PYPROF_TARGET_TARGET_H
#define PYPROF_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/native_code.h"
#include "target/memory.h"

#define TARGET_MAX_MAPS	   65536
#define TARGET_CMDLINE_MAX 4096
#define TARGET_MAX_THREADS 65536

/* One line of /proc/PID/maps. path may be empty, "[heap]", or end in " (deleted)". */
struct target_map {
	uint64_t start, end, offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool read, write, exec, shared;
	char *path; /* owned */
};

struct target_maps {
	struct target_map *v;
	size_t n;
};

/* A file, as stat(2) identifies it. */
struct target_file {
	uint64_t dev, ino;
};

/* Which program a process runs, and as which user; an exec changes it. */
struct target_identity {
	uint64_t starttime; /* field 22 of /proc/PID/stat */
	uint64_t auxv;	    /* hash of the auxiliary vector, which the kernel makes at exec */
	struct target_file exe;
	uint32_t uid, gid; /* real, effective, saved and file system ids alike; else 0 */
	bool mixed;	   /* they differ: a set-user-id or set-group-id program */
};

/* What of a process can be opened for reading. */
enum target_part {
	TARGET_EXE,
	TARGET_MAP, /* the file behind the mapping start-end */
	TARGET_MAPS,
	TARGET_MEM,
	TARGET_CMDLINE,
	TARGET_AUXV,
	TARGET_ENVIRON,
	TARGET_PARTS
};

/*
 * How the files and the memory of a process are reached. A helper process without privileges (see
 * inspect/inspect.h) asks another process to open them.
 */
struct target_access {
	/* A descriptor, the caller's, or a negative errno. start, end: TARGET_MAP only. */
	int (*open)(void *ctx, enum target_part part, uint64_t start, uint64_t end);
	void *ctx;
	struct memory memory;
};

struct target {
	const struct target_access *access; /* borrowed; NULL: directly, see target_open_part */
	pid_t pid;			    /* as we see it */
	pid_t tid;	    /* whose /proc/TID shows its memory and files: see target_hold */
	pid_t parent;	    /* when it was opened */
	int pidfd;	    /* readable once the process has ended */
	uint64_t starttime; /* field 22 of /proc/PID/stat: tells a reused pid */
	uid_t uid;	    /* whom it belongs to; root's if the kernel guards it from its user */
	struct target_identity identity; /* of when it was opened or refreshed */
	char exe[4096];			 /* readlink of /proc/PID/exe */
	/* Arguments joined by spaces, control characters replaced; "" before target_read_cmdline. */
	char cmdline[TARGET_CMDLINE_MAX];
};

/*
 * Open a part of a process, or reach its memory: through t->access, else through /proc/TID. Opening
 * and reading may block for as long as a file system's server does not answer, also beyond
 * SIGKILL: the daemon leaves all of it to helper processes (inspect/inspect.h).
 */
int target_open_part(const struct target *t, enum target_part part, uint64_t start, uint64_t end);
/* The same by numbers alone; dirfd: /proc/TID. */
int target_open_part_at(int dirfd, enum target_part part, uint64_t start, uint64_t end);
struct memory target_memory(const struct target *t);
/* Fill t->cmdline. 0 or a negative errno. */
int target_read_cmdline(struct target *t);

/*
 * The functions from here to target_alive that read about another process have a deadline: its exec
 * can block them (see deadline.h). They return -ETIMEDOUT or -EBUSY then, and diag says so.
 */

/* Open pid. Exit code 3 if there is no such process (or it is a zombie), 4 if it is not ours to
 * trace. A thread id that is not a process id: exit code 3, the hint names the process. */
int target_open(pid_t pid, struct target **ret, struct diag *diag);
void target_free(struct target *t);
DEFINE_FREEP(struct target, target_free)

/*
 * Through which thread the process is looked at: the main thread, or any other if that has ended
 * (pthread_exit in it) while the process goes on. It stays the same as long as it lives. -ESRCH:
 * there is none. -ETIMEDOUT, -EBUSY: not known.
 */
int target_hold(struct target *t);

/* Read again what an exec changes: exe and identity; cmdline is empty then. */
int target_refresh(struct target *t, struct diag *diag);

/* Which program it runs now. -EAGAIN: it executed another one meanwhile; -ESRCH: it has ended;
 * else a negative errno. */
int target_identify(const struct target *t, struct target_identity *ret);
bool target_identity_equal(const struct target_identity *a, const struct target_identity *b);
/* 0: it still runs the program that t->identity describes, as the same user and group. -ESTALE: it
 * does not; -ESRCH: it has ended; diag says so. */
int target_check(const struct target *t, struct diag *diag);

/*
 * 0: its code runs as it is in its files. Exit code 5, -ENOEXEC: valgrind or qemu translates it, or rr
 * records it, and probes would miss calls, or disturb the recording.
 */
int target_check_native(const struct target *t, struct diag *diag);
/* Which one, by the path of what runs it, and the name of its tracer ("": none); NULL: none. Pure. */
const char *target_emulator_of(const char *exe, const char *tracer);

/*
 * What a process has from its last exec on, and hands down to its forked children: a hash of its
 * auxiliary vector, which holds the addresses of this very start, and of the kernel's random bytes
 * for it. Equal ids: the same program at the same addresses. 0: cannot be read.
 */
uint64_t target_exec_id(const struct target *t);

/* open(2), close-on-exec, of a path below /proc. A descriptor or a negative errno. */
int target_open_path(const char *path, int flags);

/* proc_stat_read of /proc/PID/stat. -ESRCH: there is none. */
struct proc_stat;
int target_stat_read(pid_t pid, struct proc_stat *ret);

/* The file behind a path. 0 or a negative errno. Does not wait for a file system's server. */
int target_file_of(const char *path, struct target_file *ret);
bool target_file_equal(const struct target_file *a, const struct target_file *b);

/*
 * Refuse a file on a FUSE file system that is not root's (exit code 5); path is a /proc path of it.
 * t: whose mounts may tell more than ours; may be NULL. Does not wait for a file system's server.
 */
int target_check_mount(const struct target *t, const char *path, struct diag *diag);

/* Which file system a mountinfo text says this is: by its device number, or by the mount's id where
 * that is not 0. Pure. */
enum mount_kind { MOUNT_UNKNOWN, MOUNT_KERNEL, MOUNT_FUSE_ROOT, MOUNT_FUSE_USER };
struct mount_key {
	uint64_t major, minor, id;
};
enum mount_kind mount_kind_of(const char *mountinfo, const struct mount_key *key);

/* Children of a process that are processes, up to max; how many. */
#define TARGET_MAX_CHILDREN 4096
size_t target_children(pid_t pid, pid_t *out, size_t max);

/* When a process was started or forked, CLOCK_MONOTONIC ns, to a clock tick; 0: not known. */
uint64_t target_started_ns(const struct target *t);

bool target_alive(const struct target *t); /* the same process, not a zombie */

/* Parse maps text (pure; hostile input) or read them. */
int target_maps_parse(const char *text, size_t size, struct target_maps *ret, struct diag *diag);
int target_maps_read(const struct target *t, struct target_maps *ret, struct diag *diag);
void target_maps_deinit(struct target_maps *maps);
/* The mapping of code that the address is in; -ENOENT: there is none. Pure. */
int target_maps_code(const struct target_maps *maps, uint64_t address, struct native_code *ret);

/*
 * Open the file behind a mapping, the very inode that is mapped: through /proc/PID/exe if it is
 * the executable, else /proc/PID/map_files/START-END; never by its path. On success the fd is
 * returned and `via` (size bytes) holds the /proc path it was opened through, which also serves to
 * attach probes.
 */
int target_open_map(const struct target *t, const struct target_map *map, char *via, size_t size,
		    struct diag *diag);

/* A thread, from /proc/PID/task. */
struct target_thread {
	pid_t tid;
	char state; /* R S D Z … */
	char comm[16];
	uint64_t runtime; /* first field of schedstat: ns on CPU */
};

/* All threads; *ret is malloc'd, owned by the caller. Threads that vanish meanwhile, and those
 * beyond TARGET_MAX_THREADS, are left out. */
int target_threads(const struct target *t, struct target_thread **ret, size_t *n,
		   struct diag *diag);
/* One thread; -ESRCH or -ENOENT if it has gone. */
int target_thread_read(pid_t pid, pid_t tid, struct target_thread *ret);
/* The same for n of them with one deadline. 0, or a negative errno: none was read. */
struct target_reading {
	struct target_thread thread; /* its tid: the caller's */
	int err;		     /* as target_thread_read returns it */
};
int target_threads_update(pid_t pid, struct target_reading *v, size_t n);

/* Whether all threads of a process are on their way out or gone. Its memory and its program go
 * before it is a zombie, so what is missing of such a process says nothing of what it was. */
bool target_ending(pid_t pid);

#endif
