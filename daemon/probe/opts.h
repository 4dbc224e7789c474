/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a probe, and the counts that it returns. */
#ifndef PYPROF_PROBE_OPTS_H
#define PYPROF_PROBE_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mode.h"
#include "plan/plan.h"
#include "python/layout.h"

/*
 * Environment variable (for tests): if it is set, stacks of waiting threads are walked when waits
 * begin, as on kernels without kcaps_has_resume().
 */
#define PROBE_WALK_AHEAD "PYPROFD_WALK_AHEAD"

/* Additional options for sampling. Addresses are in the process. */
struct probe_sampling {
	uint32_t rate;	      /* Hz; less if it would take more than: */
	double share;	      /* of the process's CPU time; 0: no limit */
	uint8_t when;	      /* PYP_SAMPLING_* */
	bool top;	      /* only the innermost frame of each stack is needed */
	bool momentary;	      /* for a moment only: the timers are not shared with others */
	uint64_t interp_head; /* address of the pointer to the first interpreter */
	uint64_t code_type;   /* address of PyCode_Type */
	/* The interpreter's own code; if empty, samples contain no C functions. */
	struct pyp_code_range own[PYP_OWN_CODE];
};

struct probe_opts {
	pid_t pid;	   /* 0: set later by probe_set_target */
	pid_t tid;	   /* a live thread of the process; 0: the main thread */
	const char *via;   /* path to attach through: /proc/PID/exe or map_files/… */
	uint64_t bias;	   /* of the file in the process: address - plan_site.vaddr */
	uint32_t counters; /* bit mask by enum pyp_counter */
	bool builtins;	   /* include calls of C functions; in samples only without a trace */
	bool collections;  /* include garbage collections, if the plan has them; not MODE_SAMPLE */
	size_t ring_bytes; /* a power of two, at least a page */
	bool marks;	   /* probe_marks_attach will be called; MODE_TRACE */
	bool mark_records; /* marks are recorded and counted by thread, too */
	bool light;	   /* MODE_SAMPLE: small maps, see struct target_opts */
	const struct layout *layout;
	const struct plan *plan; /* borrowed for the probe's lifetime; NULL: MODE_SAMPLE */
	enum mode mode;
	/* MODE_COUNT: nothing but the evaluator is known to run frames (see python_hidden) */
	bool plain;
	/* rate 0: no samples. MODE_COUNT always uses interp_head, also after it was changed; 0: unknown */
	struct probe_sampling sampling;
	/*
	 * Stacks of waiting threads to walk per second, for modes other than MODE_TRACE; 0: waits are not
	 * reported. Needs the addresses in `sampling`.
	 */
	uint16_t walks;
	struct pyp_native_types native; /* for `builtins` */
};

/*
 * MODE_COUNT: counts since the probe was opened, except those removed by probe_counts_drop. Code
 * objects are numbers; CODE_ID records in the ring map them. The caller frees the array. Calls in
 * progress may be missing.
 */
struct probe_count {
	struct pyp_edge edge;
	uint64_t calls;
};

#endif
