/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process as the operating system shows it: identity, mappings, threads, end. Independent of
 * Python.
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

/* A file's identity, as from stat(2) */
struct target_file {
	uint64_t dev, ino;
};

/* The program that a process executes and its user; an exec changes it. */
struct target_identity {
	uint64_t starttime; /* field 22 of /proc/PID/stat */
	uint64_t auxv;	    /* hash of the auxiliary vector, which each exec creates */
	struct target_file exe;
	uint32_t uid, gid; /* real, effective, saved and file system ids if all are equal; else 0 */
	bool mixed;	   /* they differ: a set-user-id or set-group-id program */
};

/* Files of a process */
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
 * Access to a process's files and memory. The helper process without privileges (inspect/inspect.h)
 * asks another process to open them.
 */
struct target_access {
	/* Returns a descriptor owned by the caller or a negative errno. start, end: for TARGET_MAP
	 * only. */
	int (*open)(void *ctx, enum target_part part, uint64_t start, uint64_t end);
	void *ctx;
	struct memory memory;
};

struct target {
	const struct target_access *access; /* borrowed; NULL: direct access, see
					     * target_open_part */
	pid_t pid;			    /* in the daemon's pid namespace */
	pid_t tid;			    /* thread whose /proc/TID is used: see target_hold */
	pid_t parent;			    /* when it was opened */
	int pidfd;			    /* readable after the process has ended */
	uint64_t starttime; /* field 22 of /proc/PID/stat: distinguishes reuses of a pid */
	uid_t uid;	    /* owner; 0 for non-dumpable processes */
	struct target_identity identity; /* when opened or refreshed */
	char exe[4096];			 /* readlink of /proc/PID/exe */
	/* Arguments joined by spaces, control characters replaced; "" before
	 * target_read_cmdline() */
	char cmdline[TARGET_CMDLINE_MAX];
};

/*
 * Open a file of a process, or access its memory, through t->access or /proc/TID. Opening and
 * reading may block as long as a file system's server does not answer, even after SIGKILL, so the
 * daemon leaves both to helper processes (inspect/inspect.h). Returns a descriptor or a negative
 * errno.
 */
int target_open_part(const struct target *t, enum target_part part, uint64_t start, uint64_t end);
/* The same for an open directory /proc/TID. */
int target_open_part_at(int dirfd, enum target_part part, uint64_t start, uint64_t end);
struct memory target_memory(const struct target *t);
/* Set t->cmdline. Returns 0 or a negative errno. */
int target_read_cmdline(struct target *t);

/*
 * The functions from here to target_alive that read about another process have a deadline, because
 * its exec can block them (see deadline.h). They then return -ETIMEDOUT or -EBUSY and set diag.
 */

/* Open a process; *ret is owned by the caller. Exit code 3: no such process, a zombie, or the id of
 * a thread (the hint names its process); 4: no permission to trace it. */
int target_open(pid_t pid, struct target **ret, struct diag *diag);
void target_free(struct target *t);
DEFINE_FREEP(struct target, target_free)

/*
 * Set t->tid, the thread through which /proc is read: the main thread, or any other if the main
 * thread has ended (pthread_exit) while the process continues. A live thread is kept. -ESRCH: no
 * thread is left. -ETIMEDOUT, -EBUSY: unknown.
 */
int target_hold(struct target *t);

/* After an exec, read exe and identity again and clear cmdline. */
int target_refresh(struct target *t, struct diag *diag);

/* Read the present identity. -EAGAIN: an exec happened meanwhile; -ESRCH: it has ended; or another
 * negative errno. */
int target_identify(const struct target *t, struct target_identity *ret);
bool target_identity_equal(const struct target_identity *a, const struct target_identity *b);
/* Check that the process still runs the program in t->identity, with the same user and group.
 * -ESTALE: it does not; -ESRCH: it has ended. */
int target_check(const struct target *t, struct diag *diag);

/*
 * Check that the process executes the code in its files. -ENOEXEC, exit code 5: valgrind or qemu
 * translates it, or rr records it. Probes would miss calls or disturb the recording.
 */
int target_check_native(const struct target *t, struct diag *diag);
/* The emulator's name, given the path of the executable and its tracer's name ("": none); NULL:
 * none. Pure. */
const char *target_emulator_of(const char *exe, const char *tracer);

/*
 * Identifies an exec, including its forked children: a hash of the auxiliary vector, which has the
 * addresses of this start, and of the kernel's random bytes. Equal ids mean the same program at the
 * same addresses. 0: cannot be read.
 */
uint64_t target_exec_id(const struct target *t);

/* open(2) with close-on-exec for a path in /proc. Returns a descriptor or a negative errno. */
int target_open_path(const char *path, int flags);

/* proc_stat_read() of /proc/PID/stat. -ESRCH: no such process. */
struct proc_stat;
int target_stat_read(pid_t pid, struct proc_stat *ret);

/* The identity of the file at path. Does not wait for file system servers. Returns 0 or a negative
 * errno. */
int target_file_of(const char *path, struct target_file *ret);
bool target_file_equal(const struct target_file *a, const struct target_file *b);

/*
 * Refuse (exit code 5) a file on a FUSE file system that root has not mounted. path: a /proc path
 * of the file; t (may be NULL): also look at this process's mounts. Does not wait for file system
 * servers.
 */
int target_check_mount(const struct target *t, const char *path, struct diag *diag);

/* The kind of file system, found in a mountinfo text by device number or by mount id (if not 0).
 * Pure. */
enum mount_kind { MOUNT_UNKNOWN, MOUNT_KERNEL, MOUNT_FUSE_ROOT, MOUNT_FUSE_USER };
struct mount_key {
	uint64_t major, minor, id;
};
enum mount_kind mount_kind_of(const char *mountinfo, const struct mount_key *key);

/* The child processes of pid, at most max. Returns their number. */
#define TARGET_MAX_CHILDREN 4096
size_t target_children(pid_t pid, pid_t *out, size_t max);

/* Start of the process (exec or fork), CLOCK_MONOTONIC ns with the resolution of a clock tick; 0:
 * unknown */
uint64_t target_started_ns(const struct target *t);

bool target_alive(const struct target *t); /* the process exists and is not a zombie */

/* Parse maps text (pure; hostile input), or read it from /proc. */
int target_maps_parse(const char *text, size_t size, struct target_maps *ret, struct diag *diag);
int target_maps_read(const struct target *t, struct target_maps *ret, struct diag *diag);
void target_maps_deinit(struct target_maps *maps);
/* The code mapping that contains address. -ENOENT: none. Pure. */
int target_maps_code(const struct target_maps *maps, uint64_t address, struct native_code *ret);

/*
 * Open the inode behind a mapping: through /proc/PID/exe if it is the executable, else
 * /proc/PID/map_files/START-END, never by its path. Returns the descriptor; `via` (size bytes) is
 * set to the /proc path used, which can also serve to attach probes.
 */
int target_open_map(const struct target *t, const struct target_map *map, char *via, size_t size,
		    struct diag *diag);

/* A thread, from /proc/PID/task */
struct target_thread {
	pid_t tid;
	char state; /* R S D Z … */
	char comm[16];
	uint64_t runtime; /* first field of schedstat: CPU time in ns */
};

/* All threads; *ret is malloc'd and owned by the caller. Leaves out threads that end meanwhile and
 * those beyond TARGET_MAX_THREADS. */
int target_threads(const struct target *t, struct target_thread **ret, size_t *n,
		   struct diag *diag);
/* One thread. -ESRCH or -ENOENT: it is gone. */
int target_thread_read(pid_t pid, pid_t tid, struct target_thread *ret);
/* The same for n threads with one deadline. A negative errno means that none was read. */
struct target_reading {
	struct target_thread thread; /* tid is set by the caller */
	int err;		     /* result of target_thread_read() */
};
int target_threads_update(pid_t pid, struct target_reading *v, size_t n);

/*
 * Returns whether all threads of the process are exiting or gone. Such a process loses its memory
 * and program before it becomes a zombie, so missing data is no evidence of another program.
 */
bool target_ending(pid_t pid);

#endif
