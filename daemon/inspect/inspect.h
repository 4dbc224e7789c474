/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helper processes that look into a target: they parse its files and its maps, plan the probes and
 * read its memory. The daemon parses and reads nothing of that itself.
 *
 * Each target has an inspector: a forked process without privileges, network, files or any system
 * call but reading, computing and writing its answer. What it needs of the target is opened by a
 * second process, the opener, which keeps the capabilities that takes and parses nothing. Either may wait for
 * ever (for a file system's server that does not answer, beyond SIGKILL too) or answer anything:
 * the daemon waits no longer than its deadline, checks each answer (answer.h), and an inspector
 * that fails is an error for its one target.
 */
#ifndef PYPROF_INSPECT_INSPECT_H
#define PYPROF_INSPECT_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/code_names.h"
#include "base/diag.h"
#include "plan/plan.h"
#include "python/census.h"
#include "python/python.h"
#include "target/target.h"

struct inspect;

/* How long finding the interpreter and planning may take. */
#define INSPECT_DEADLINE_NS 10000000000ull
/* How long the daemon waits for what it asks of a target that it traces: while a read blocks, and
 * while the inspector runs, or waits for a processor on a busy machine. */
#define INSPECT_WAIT_MS 100
#define INSPECT_RUN_MS	800
/* The same of a census, which reads up to 32 million objects. */
#define INSPECT_CENSUS_MS 60000

struct inspect_opts {
	const struct target *target; /* borrowed during inspect_start; NULL: the file at path */
	const char *path;
	/* If the target's exec id is this: only say so, and use this interpreter's facts later. */
	const struct python *like;
	uint64_t like_exec_id;
	bool plan;   /* make a plan */
	bool breaks; /* look for breakpoints in all of the interpreter's code */
	bool check;  /* compare the layout with the target's stacks: see python_check */
};

#define INSPECT_BREAKS 8

/* What was found. */
struct inspect_result {
	bool same;	       /* see like; then python is NULL */
	struct python *python; /* owned; without image */
	int plan_err; /* the plan could not be made: plan_diag says why; plan is for people */
	struct diag plan_diag;
	struct plan plan;
	uint64_t exec_id; /* see target_exec_id */
	char cmdline[TARGET_CMDLINE_MAX];
	char warning[256]; /* see python_hidden */
	bool misses;
	unsigned int site_breaks; /* breakpoints at planned sites: see breaks.h */
	uint32_t nbreaks;	  /* in all of the code, if asked for; addresses of the first */
	uint64_t breaks[INSPECT_BREAKS];
};

void inspect_result_deinit(struct inspect_result *r);

/* Start the processes. An error, also if too many could not be ended before. */
int inspect_start(const struct inspect_opts *opts, struct inspect **ret, struct diag *diag);
/* Ends the processes; does not wait for one that cannot be killed. */
void inspect_free(struct inspect *in);
DEFINE_FREEP(struct inspect, inspect_free)

/* Readable when inspect_poll has something to do; when it is to be called at the latest, in
 * CLOCK_MONOTONIC ns. */
int inspect_fd(const struct inspect *in);
uint64_t inspect_deadline(const struct inspect *in);

/*
 * The result, once; takes no time. -EINPROGRESS: not yet. On any other error (diag says which) the
 * inspector is of no more use. *ret is filled only if 0 is returned.
 */
int inspect_poll(struct inspect *in, struct inspect_result *ret, struct diag *diag);
/* The same, waiting up to ms (-1: until the deadline), with pump (may be NULL) called meanwhile. */
int inspect_wait(struct inspect *in, int ms, void (*pump)(void *ctx), void *ctx,
		 struct inspect_result *ret, struct diag *diag);
/* All in one: start, wait, end. */
int inspect_once(const struct inspect_opts *opts, struct inspect_result *ret, struct diag *diag);

/*
 * Questions to an inspector that has given its result; in may be NULL (-ENOTCONN). They wait for
 * INSPECT_WAIT_MS (or INSPECT_RUN_MS) at most: -ETIMEDOUT. While an earlier one is not answered:
 * -EBUSY, at once. Other errors are the functions' of python.h, or that it has ended.
 */
int inspect_stacks(struct inspect *in, pid_t pid, struct python_stack **ret, size_t *n);
/* The same by python_dump, with lines. */
int inspect_dump(struct inspect *in, pid_t pid, struct python_stack **ret, size_t *n);
int inspect_code(struct inspect *in, uint64_t code, struct code_names *ret);
int inspect_hidden(struct inspect *in, bool *misses, char *out, size_t size);
/* Where its GILs are, the rest of ret zeroed: how many ranges. 0: not known. */
int inspect_gils(struct inspect *in, struct pyp_gil_range ret[PYP_GIL_RANGES]);
/* The objects of the target by type: see census.h. Waits for up to INSPECT_CENSUS_MS: not to be asked
 * by the daemon's event loop. */
int inspect_census(struct inspect *in, struct census *ret);
/* 0: the memory that it reads is no more (the target has executed a program, or ended). */
int inspect_exec_id(struct inspect *in, uint64_t *ret);

/* Questions for stacks and code objects that were not answered in time. */
uint64_t inspect_late(const struct inspect *in);

#endif
