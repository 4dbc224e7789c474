/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proof before production: the target's own interpreter runs a small program as a scratch process,
 * which is traced with the plan that the target would be traced with, and what was seen is compared
 * with what that program is known to do: every call, return, yield, throw and unwinding, in order,
 * also while a profiler, a debugger or sys.monitoring watches it. The verdict is kept, by the target's
 * user, interpreter file and plan (cache.h), so this happens once for each.
 *
 * The probes' own cost, which is measured apart (calibration.h), is kept with the verdict.
 *
 * The scratch process has the target's user, mount namespace and root directory, no capability, no
 * network, no device, no site directory, little memory and time. The target itself is not touched.
 */
#ifndef PYPROF_VERIFY_VERIFY_H
#define PYPROF_VERIFY_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cost.h"
#include "base/diag.h"
#include "plan/plan.h"
#include "python/python.h"
#include "target/target.h"

enum verify_verdict {
	VERIFY_NOT_RUN, /* could not be: reason says why */
	VERIFY_RIGHT,	/* all was seen as it happened */
	VERIFY_WRONG,	/* something was seen that did not happen, or the reverse: reason */
	VERIFY_SKIPPED, /* its user did not want it */
};

struct verify_result {
	enum verify_verdict verdict;
	bool cached;
	uint32_t events;	   /* how many were compared */
	uint32_t functions, calls; /* what they come to */
	uint32_t sites;		   /* of the plan, that they came from */
	uint64_t site_mask;	   /* which, a bit each; 0 when cached */
	uint64_t more_sites[2];	   /* the same of sites 64 to 191 */
	uint32_t event_ns;	   /* what an event costs the target, on this machine */
	struct cost cost;	   /* the same by kind, before and after the clock is read */
	bool grouped; /* its memory and its threads were bounded by a control group, too */
	char reason[160];
	char gc_wrong[160]; /* what was wrong about collections, whatever the verdict; "": nothing */
};

struct verify_opts {
	const struct python *python;
	const struct plan *plan;
	const struct target *target; /* whose interpreter it is; NULL: python->file, to be run */
	bool fresh;		     /* run even if a verdict is known */
	bool builtins;		     /* of calls of C functions, which is always run */
	void (*pump)(void *ctx);     /* called every few ms meanwhile; may be NULL */
	void *pump_ctx;
};

/* Never an error: what could not be done is VERIFY_NOT_RUN. At most a few seconds. */
void verify_run(const struct verify_opts *opts, struct verify_result *ret);

/* "passed: 24985 events of 40 functions at 9 sites, each as it had to be; …". Returns out. */
const char *verify_text(const struct verify_result *v, char *out, size_t size);
/* The same of calls of C functions: "passed: 6982 events at 39 sites". */
const char *verify_builtins_text(const struct verify_result *v, char *out, size_t size);

#endif
