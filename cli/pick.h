/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes that a command is about: by pid, by name, or by --unit, --container and --port (see
 * find/match.h for what matches). Needs no daemon.
 */
#ifndef PYPROFCTL_PICK_H
#define PYPROFCTL_PICK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "base/opts.h"
#include "client.h"

#define PICK_MAX OPT_PIDS_MAX

struct pick_opts {
	const char *unit, *container; /* NULL: not given */
	uint64_t port;		      /* 0: not given */
	bool all;		      /* all processes that match, instead of one */
};

#define PICK_FIELD(type, member, f) .offset = offsetof(type, member.f)

/* Rows of the option table of a struct `type` that has a struct pick_opts `member` */
#define PICK_OPTS(type, member)                                                                    \
	{"unit",     0,                                                                            \
	 OPT_STRING, PICK_FIELD(type, member, unit),                                               \
	 "NAME",     "the process of this systemd unit"},                                          \
		{"container",                                                                      \
		 0,                                                                                \
		 OPT_STRING,                                                                       \
		 PICK_FIELD(type, member, container),                                              \
		 "ID",                                                                             \
		 "the process of this container (the beginning of its\nid, or its name for lxc)"}, \
		{"port",                                                                           \
		 0,                                                                                \
		 OPT_U64,                                                                          \
		 PICK_FIELD(type, member, port),                                                   \
		 "PORT",                                                                           \
		 "the process that listens on this "                                               \
		 "TCP port",                                                                       \
		 .min = 1,                                                                         \
		 .max = UINT16_MAX},                                                               \
	{                                                                                          \
		"all", 0, OPT_FLAG, PICK_FIELD(type, member, all), NULL,                           \
			"all processes that match, not only one"                                   \
	}

struct picked {
	pid_t pid;
	uint64_t starttime; /* of the process that was found; 0: the pid was given */
};

/* All zero: none */
struct pick {
	struct picked v[PICK_MAX];
	size_t n;
};

/* Are words, --unit, --container or --port given? Exit code 2. */
int pick_check(const struct pick_opts *o, size_t nwords, struct diag *diag);

/*
 * Find the processes, each once. words: pids and names; what begins with a digit and has neither a
 * dot nor a slash must be a pid. children: children will be traced with
 * their parents, so do not pick both.
 *
 * If several match, and all descend from one of them, it is picked, which is reported on stderr;
 * otherwise --all is required (exit code 2, with a line for each on stderr). What cannot be found
 * (exit code 3) is reported on stderr at once, and the others are picked: then the result is
 * negative, diag has the first failure's exit code and no message, and ret->n may still be above 0.
 * ret->n is 0 if words are invalid or repeated (exit code 2).
 */
int pick_processes(const struct pick_opts *o, char *const *words, size_t nwords, bool children,
		   struct pick *ret, struct diag *diag);

/* -ESRCH, exit code 3: the process that was found has ended, and another one has its pid. Call
 * before and after whatever refers to it by its pid. */
int pick_check_same(const struct picked *p, struct diag *diag);

/*
 * Attach a daemon by this function to the process that was found. As the daemon is given its pid,
 * another process that has it meanwhile is detached again: pick_check_same().
 */
int pick_attach(const struct picked *p, struct client *c,
		int (*attach)(void *ctx, pid_t pid, struct diag *diag), void *ctx,
		struct diag *diag);

/* Log one of several failures, and set diag to its exit code without a message, unless it is set
 * already: the first failure decides the exit status. */
void pick_report(const struct diag *why, struct diag *diag);

#endif
