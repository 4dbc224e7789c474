/* SPDX-License-Identifier: BSD-2-Clause */
/* Client commands that record until a signal, in the background of an end-to-end test. */
#ifndef PYPROF_TESTS_HARNESS_BACKGROUND_H
#define PYPROF_TESTS_HARNESS_BACKGROUND_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "harness/daemon.h"
#include "harness/traced.h"

/*
 * Starts `pyprofctl --socket … ARG...` (args: NULL at the end) and waits until `records` is true; NULL: does not
 * wait. errors: file for its standard error; NULL: the test's own. Returns its pid.
 */
pid_t background_start(const struct pyprofd *d, const char *errors, bool (*records)(void),
		       const char *const *args);
/* Sends a signal, unless it is 0, and waits for the end; returns the exit status, or 128 + signal. */
int background_end(pid_t child, int signal);

/* The private daemon of a command, once it has one: only for background_api() and ctl_*() without a command. */
struct pyprofd background_private(pid_t child);
/* Waits until the command's private daemon traces so many targets. */
void background_until_traced(pid_t child, size_t targets);

/* Sends a request to the daemon; body may be NULL, and is consumed. The caller frees the answer. */
json_t *background_api(const struct pyprofd *d, const char *method, const char *path, json_t *body);

/* Runs a script on the files in d's directory, its argument: it prints "fine" if they are right. */
void background_judge(const struct pyprofd *d, const char *script);

/* Ends the daemon, which must exit with 0, and the target, which waits for a line. */
void background_finish(struct pyprofd *d, struct traced *t);

#endif
