/* SPDX-License-Identifier: BSD-2-Clause */
/* What the self-test needs and what it finds: see verify.h. */
#ifndef PYPROF_VERIFY_RESULT_H
#define PYPROF_VERIFY_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cost.h"
#include "plan/plan.h"
#include "python/python.h"
#include "target/target.h"

enum verify_verdict {
	VERIFY_NOT_RUN, /* impossible, see reason */
	VERIFY_RIGHT,	/* all events as expected */
	VERIFY_WRONG,	/* missing, extra or wrong events, see reason */
	VERIFY_SKIPPED, /* disabled by the user */
};

struct verify_result {
	enum verify_verdict verdict;
	bool cached;
	uint32_t events;	   /* number of events compared */
	uint32_t functions, calls; /* functions and calls in them */
	uint32_t sites;		   /* number of the plan's sites that caused them */
	uint64_t site_mask;	   /* bit mask of these sites; 0 if cached */
	uint64_t more_sites[2];	   /* the same for sites 64 to 191 */
	uint32_t event_ns;	   /* cost of an event on this machine, ns */
	struct cost cost;	   /* cost by kind, before and after the clock is read */
	bool grouped;		   /* a control group limited memory and threads, too */
	char reason[160];
	char gc_wrong[160]; /* what was wrong about collections, whatever the verdict; "": nothing */
};

struct verify_opts {
	const struct python *python;
	const struct plan *plan;
	const struct target *target; /* target whose interpreter is tested; NULL: run
				      * python->file */
	bool fresh;		     /* ignore cached results */
	bool builtins;		     /* test calls of C functions; never cached */
};

/* "passed: 24985 events of 40 functions at 9 sites, all as expected; …". Returns out. */
const char *verify_text(const struct verify_result *v, char *out, size_t size);
/* The same for calls of C functions: "passed: 6982 events at 39 sites" */
const char *verify_builtins_text(const struct verify_result *v, char *out, size_t size);

#endif
