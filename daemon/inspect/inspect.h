/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helper processes that inspect a target: they parse its files and maps, plan the probes, and read
 * its memory. The daemon itself does none of that.
 *
 * Each target has an inspector: a process without privileges, network, files and secrets, whose only
 * system calls read, compute and send its answer. A second process, the opener, opens what the
 * inspector needs of the target; it keeps the capabilities for that, and parses nothing. Both may
 * block for ever (even after SIGKILL, if a file system's server does not respond) or send anything.
 * Therefore the daemon waits with a deadline and checks each answer (answer.h), and a failing
 * inspector is an error of one target only. An inspector that is killed, other than by a crash, is
 * started again.
 */
#ifndef PYPROF_INSPECT_INSPECT_H
#define PYPROF_INSPECT_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/code_lines.h"
#include "base/code_names.h"
#include "base/diag.h"
#include "plan/plan.h"
#include "python/census.h"
#include "python/details.h"
#include "python/python.h"
#include "target/target.h"

struct inspect;

/* Time limit of finding the interpreter and planning; tests change it. */
extern uint64_t inspect_limit_ns;
/* Time limits of questions about a traced target: while a read blocks, and while the inspector runs
 * or waits for a CPU. */
#define INSPECT_WAIT_MS 100
#define INSPECT_RUN_MS	800
/* The same of a census, which reads up to 32 million objects. */
#define INSPECT_CENSUS_MS 60000

struct inspect_opts {
	const struct target *target; /* borrowed during inspect_start(); NULL: inspect the file
				      * at path */
	const char *path;
	/* If the target has this exec id, only report that (`same`), and use the facts in `like`
	 * later. */
	const struct python *like;
	uint64_t like_exec_id;
	bool plan;    /* plan the probes */
	bool breaks;  /* search all of the interpreter's code for breakpoints */
	bool check;   /* check the layout with the target's stacks: see python_check() */
	bool details; /* prepare inspect_tasks() */
	bool patient; /* all questions have the time limits of a census */
};

#define INSPECT_BREAKS 8

/* Result of an inspection */
struct inspect_result {
	bool same;	       /* the exec id matched; python is NULL */
	struct python *python; /* owned; has no image */
	int plan_err; /* planning failed, see plan_diag; the incomplete plan can still be printed */
	struct diag plan_diag;
	struct plan plan;
	uint64_t exec_id; /* see target_exec_id */
	char cmdline[TARGET_CMDLINE_MAX];
	char warning[256]; /* see python_hidden() */
	bool misses;
	unsigned int site_breaks; /* breakpoints at planned sites: see breaks.h */
	uint32_t nbreaks;	  /* breakpoints in all code, if requested; addresses of the
				   * first ones */
	uint64_t breaks[INSPECT_BREAKS];
};

void inspect_result_deinit(struct inspect_result *r);

/* Start the processes. Also fails if too many earlier ones could not be ended. *ret is owned by the
 * caller. */
int inspect_start(const struct inspect_opts *opts, struct inspect **ret, struct diag *diag);
/* End the processes, without waiting for those that cannot be killed. NULL is accepted. */
void inspect_free(struct inspect *in);
DEFINE_FREEP(struct inspect, inspect_free)

/* Call inspect_poll() when the descriptor is readable, or at the deadline (CLOCK_MONOTONIC ns). */
int inspect_fd(const struct inspect *in);
uint64_t inspect_deadline(const struct inspect *in);

/*
 * Get the result, once, without blocking. -EINPROGRESS: not available yet. After any other error
 * the inspector is unusable. *ret is set only on success.
 */
int inspect_poll(struct inspect *in, struct inspect_result *ret, struct diag *diag);
/* The same, blocking for up to ms (-1: until the deadline). */
int inspect_wait(struct inspect *in, int ms, struct inspect_result *ret, struct diag *diag);
/*
 * Open a target (opts->target) for questions: check that its program can be inspected, start, wait
 * for the result, and check where the interpreter found is mounted. Exit codes 4 and 5. *ret_inspect
 * and *ret are set only on success; the caller frees both.
 */
int inspect_open(const struct inspect_opts *opts, struct inspect **ret_inspect,
		 struct inspect_result *ret, struct diag *diag);
/* Start, wait and end. */
int inspect_once(const struct inspect_opts *opts, struct inspect_result *ret, struct diag *diag);

/*
 * Questions to an inspector that has delivered its result. in may be NULL (-ENOTCONN). They wait at
 * most INSPECT_WAIT_MS (blocked) or INSPECT_RUN_MS (running), for a patient client as long as for a
 * census: -ETIMEDOUT. -EBUSY: an earlier question is unanswered, or the inspector is being
 * started again. Other errors: those of the functions
 * in python.h, or that the inspector has ended. An error leaves nothing to free.
 */
int inspect_stacks(struct inspect *in, pid_t pid, struct python_stack **ret, size_t *n);
/* The same by python_dump, with lines. */
int inspect_dump(struct inspect *in, pid_t pid, struct python_stack **ret, size_t *n);
int inspect_code(struct inspect *in, uint64_t code, struct code_names *ret);
/* The lines of a code object; -E2BIG: too many. */
int inspect_lines(struct inspect *in, uint64_t code, struct code_lines *ret);
int inspect_hidden(struct inspect *in, bool *misses, char *out, size_t size);
/* Find the address ranges of the GILs; the rest of ret is zeroed. Returns their number; 0: unknown. */
int inspect_gils(struct inspect *in, struct pyp_gil_range ret[PYP_GIL_RANGES]);
/* The objects of the target by type: see census.h. Waits for up to INSPECT_CENSUS_MS: not to be asked
 * by the daemon's event loop. */
int inspect_census(struct inspect *in, struct census *ret);
/* The threads' names, the local variables of the frame at this address, the tasks: see
 * python/details.h. Tasks may take as long as a census, and need opts->details. */
int inspect_names(struct inspect *in, struct python_names *ret);
int inspect_locals(struct inspect *in, uint64_t frame, struct python_locals *ret);
int inspect_tasks(struct inspect *in, struct python_tasks *ret);
int inspect_greenlets(struct inspect *in, struct python_tasks *ret);
/* 0: the memory that it reads is no more (the target has executed a program, or ended). */
int inspect_exec_id(struct inspect *in, uint64_t *ret);

/* The number of questions for stacks and names of code objects that timed out. */
uint64_t inspect_late(const struct inspect *in);

#endif
