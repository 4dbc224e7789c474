/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pyprofd and pyprofctl as processes. Waits end with the time of the program (patience.h), and the
 * test fails; started processes are killed with the test, however it ends. The daemon runs in its own process
 * group: when it has ended, no process of the group may exist, and its stderr must not contain a
 * sanitizer's report.
 *
 *  struct pyprofd d;
 *  char pid[16];
 *
 *  pyprofd_start(&d, "--pid", pid_text(pid, target), NULL);
 *  text = ctl_ok(&d, "snapshot", "-f", "json", NULL);
 *  ctl_fails(&d, 7, "already", "attach", pid, NULL);
 *  pyprofd_shutdown(&d);
 *
 * What tests expect of a program is exact, and many programs do nothing but call functions. Therefore, unless the
 * arguments or `defaults` say otherwise, processes are observed with --exact --yes.
 */
#ifndef PYPROF_TESTS_HARNESS_DAEMON_H
#define PYPROF_TESTS_HARNESS_DAEMON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* The exit status and output of a program */
struct ran {
	int status;	 /* exit status, or 128 + the signal */
	char *out, *err; /* err: without the lines of what observing costs */
	char *forecast;	 /* these: of a forecast, and the overhead at the end; NULL for a daemon */
	size_t nout;
};

void ran_free(struct ran *r);

struct pyprofd {
	pid_t pid;	       /* 0: not running */
	char dir[64];	       /* temporary directory; the test may put files there */
	char sock[96];	       /* in dir */
	uid_t uid;	       /* 0: the test's user; otherwise this user, without privileges */
	gid_t group;	       /* with uid: a supplementary group; 0: none */
	char **env;	       /* NULL: the test's environment */
	bool defaults;	       /* neither --exact nor --yes is added */
	bool exact;	       /* the running daemon has --exact */
	const char *const *by; /* NULL, or a program with arguments that starts the daemon */
	char out[96], err[96]; /* files with its output */
};

/* Make the directory and set the paths. Does not start the daemon. */
void pyprofd_init(struct pyprofd *d);
/* Start `pyprofd --socket SOCK ARG...`; arguments end with NULL. Does not wait. */
void pyprofd_launch(struct pyprofd *d, ...) __attribute__((sentinel));
/* Wait until the daemon answers, or fail and show its output. */
void pyprofd_ready(struct pyprofd *d);
/* init, launch, ready. */
void pyprofd_start(struct pyprofd *d, ...) __attribute__((sentinel));
/* Wait until the daemon has ended. The caller frees the result. */
struct ran pyprofd_wait(struct pyprofd *d);
/* Remove the directory, if there is one; the daemon must have ended and removed its socket. */
void pyprofd_deinit(struct pyprofd *d);
/* `pyprofctl shutdown`; the daemon must end with status 0 and empty stderr. Then deinit. */
void pyprofd_shutdown(struct pyprofd *d);
/* Send SIGTERM if the daemon is running; it must end with status 0. Then deinit. For teardown. */
void pyprofd_end(struct pyprofd *d);
/* Send SIGKILL. All its processes must end; leftover files are removed. Then deinit. */
void pyprofd_kill(struct pyprofd *d);
/* Start a daemon that must end by itself, with this status and one line on stderr that contains
 * what. */
void pyprofd_fails(struct pyprofd *d, int status, const char *what, ...) __attribute__((sentinel));

/* Adds the options described above to argv, "pyprofctl --socket SOCK COMMAND ...", with at most max words. */
void ctl_add_options(const struct pyprofd *d, const char **argv, size_t max);
/* `pyprofctl --socket SOCK ARG...`, as user d->uid. The caller frees the result. */
struct ran ctl(const struct pyprofd *d, ...) __attribute__((sentinel));
/* As ctl(), but requires status 0 and empty stderr. Returns stdout, to be freed. */
char *ctl_ok(const struct pyprofd *d, ...) __attribute__((sentinel));
/* As ctl(), but requires this status, one line on stderr that contains what, and empty stdout,
 * except for doctor, which prints its findings. */
void ctl_fails(const struct pyprofd *d, int status, const char *what, ...)
	__attribute__((sentinel));
/* What `pyprofctl status --json` prints, asked for by this process itself if d->uid is 0: tests wait for conditions
 * in it, and starting a program for each look uses a CPU. Events count when the daemon has read them: a snapshot waits for
 * those before it, this does not. */
json_t *ctl_status(const struct pyprofd *d);
/* The time between two looks at a daemon, for conditions that take long: each look costs CPU time. */
void ctl_step(void);
/* Its i-th target, a number of that, and waiting until it is at least so large. */
json_t *ctl_target(const struct pyprofd *d, size_t i);
json_int_t ctl_number(const struct pyprofd *d, size_t i, const char *key);
void ctl_until(const struct pyprofd *d, size_t i, const char *key, json_int_t least);
/* The target with this pid; NULL if there is none. */
json_t *ctl_target_of(const struct pyprofd *d, pid_t pid);
/* A number of the target with this pid, which must be there. */
json_int_t ctl_number_of(const struct pyprofd *d, pid_t pid, const char *key);
/* The i-th target, after waiting until it is not stopping. */
json_t *ctl_target_at_rest(const struct pyprofd *d, size_t i);

/* Path of a file in the daemon's directory */
const char *pyprofd_file(const struct pyprofd *d, const char *name, char *out, size_t size);
/* Contents of a file, NUL-terminated; NULL if it does not exist. */
char *file_text(const char *path, size_t *ret_size);
/* Writes a file that only its owner may read, as secrets have to be. */
void file_put_secret(const char *path, const char *text);
/* The pid of a process that has just ended */
pid_t pid_of_nobody(void);
const char *pid_text(char out[16], pid_t pid);

#endif
