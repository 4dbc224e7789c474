/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pyprofd and pyprofctl as processes. Every wait has a deadline, after which the test fails; what
 * was started dies with the test, however that ends. The daemon runs in a process group of its own:
 * when it has ended nothing of that group may be left, and its stderr must hold no sanitizer's
 * report.
 *
 *	struct pyprofd d;
 *	char pid[16];
 *
 *	pyprofd_start(&d, "--pid", pid_text(pid, target), NULL);
 *	text = ctl_ok(&d, "snapshot", "-f", "json", NULL);
 *	ctl_fails(&d, 7, "already", "attach", pid, NULL);
 *	pyprofd_shutdown(&d);
 */
#ifndef PYPROF_TESTS_HARNESS_DAEMON_H
#define PYPROF_TESTS_HARNESS_DAEMON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* Seconds that anything may take. Generous: the machine may be busy. */
#define DAEMON_DEADLINE 60.0

/* How a program ended, and what it said. */
struct ran {
	int status;	 /* exit status, or 128 + the signal */
	char *out, *err; /* err: without a forecast's lines, which are apart */
	char *forecast;	 /* NULL: it was a daemon */
	size_t nout;
};

void ran_free(struct ran *r);

struct pyprofd {
	pid_t pid;	       /* 0: none is running */
	char dir[64];	       /* of its own; the test may put files there */
	char sock[96];	       /* in dir */
	uid_t uid;	       /* 0: as the test itself; else that user, without any privilege */
	char **env;	       /* NULL: the test's own */
	const char *const *by; /* NULL, or a program and its arguments that it is started by */
	char out[96], err[96]; /* where it says what it says */
};

/* A directory, and a socket's name in it. Starts nothing. */
void pyprofd_init(struct pyprofd *d);
/* Start `pyprofd --socket SOCK ARG...`; arguments end with NULL. Does not wait. */
void pyprofd_launch(struct pyprofd *d, ...) __attribute__((sentinel));
/* Wait until it answers, or fail showing what it said. */
void pyprofd_ready(struct pyprofd *d);
/* init, launch, ready. */
void pyprofd_start(struct pyprofd *d, ...) __attribute__((sentinel));
/* Wait for its end. The caller frees. */
struct ran pyprofd_wait(struct pyprofd *d);
/* The directory goes. */
void pyprofd_deinit(struct pyprofd *d);
/* `pyprofctl shutdown`, the end with status 0 and nothing said on stderr, deinit. */
void pyprofd_shutdown(struct pyprofd *d);
/* SIGTERM to one that runs, the end with status 0, deinit: for a test's teardown. */
void pyprofd_end(struct pyprofd *d);
/* `kill -9`, and no process of it is left; what it leaves behind otherwise goes, deinit. */
void pyprofd_kill(struct pyprofd *d);
/* Start one that must end by itself: with this status and one line on stderr that contains what. */
void pyprofd_fails(struct pyprofd *d, int status, const char *what, ...) __attribute__((sentinel));

/* `pyprofctl --socket SOCK ARG...`, as the user d->uid. The caller frees. */
struct ran ctl(const struct pyprofd *d, ...) __attribute__((sentinel));
/* The same; status 0 and an empty stderr are expected. Returns stdout, to be freed. */
char *ctl_ok(const struct pyprofd *d, ...) __attribute__((sentinel));
/* The same; this status, one line on stderr that contains what, and nothing on stdout, unless it is
 * doctor, which tells what it has found. */
void ctl_fails(const struct pyprofd *d, int status, const char *what, ...)
	__attribute__((sentinel));
/* `pyprofctl status --json`, and of it the i-th target. */
json_t *ctl_status(const struct pyprofd *d);
/* Is it answered within so many seconds? Does not wait for longer. */
bool ctl_answers(const struct pyprofd *d, double seconds);
json_t *ctl_target(const struct pyprofd *d, size_t i);
/* The same of a process; NULL: it is no target. */
json_t *ctl_target_of(const struct pyprofd *d, pid_t pid);
/* The same, once it is not being stopped. */
json_t *ctl_target_at_rest(const struct pyprofd *d, size_t i);

/* A file of the daemon's directory. */
const char *pyprofd_file(const struct pyprofd *d, const char *name, char *out, size_t size);
/* A whole file, with a 0 behind it; NULL if there is none. */
char *file_text(const char *path, size_t *ret_size);
/* One that has just ended. */
pid_t pid_of_nobody(void);
const char *pid_text(char out[16], pid_t pid);

#endif
