/* SPDX-License-Identifier: BSD-2-Clause */
/* What a probe is opened with, and the counts that it gives. */
#ifndef PYPROF_PROBE_OPTS_H
#define PYPROF_PROBE_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mode.h"
#include "plan/plan.h"
#include "python/layout.h"

/* What sampling needs besides: addresses in the process. */
struct probe_sampling {
	uint32_t rate;	      /* Hz */
	uint8_t when;	      /* PYP_SAMPLING_* */
	bool top;	      /* the first frame of each stack is enough */
	uint64_t interp_head; /* of the pointer to the first interpreter */
	uint64_t code_type;   /* of PyCode_Type */
	/* Of the interpreter's own code; without an entry C functions have no samples. */
	struct pyp_code_range own[PYP_OWN_CODE];
};

struct probe_opts {
	pid_t pid;	   /* 0: named later, by probe_set_target */
	pid_t tid;	   /* a thread of it that lives; 0: the main thread */
	const char *via;   /* path to attach through: /proc/PID/exe or map_files/… */
	uint64_t bias;	   /* of the file in the process: address - plan_site.vaddr */
	uint32_t counters; /* bits, by enum pyp_counter */
	bool builtins;	   /* calls of C functions, too; in samples: not beside a trace */
	bool collections; /* of the garbage collector, too, where the plan has them; not MODE_SAMPLE */
	size_t ring_bytes; /* a power of two, a page at least */
	const struct layout *layout;
	const struct plan *plan; /* borrowed for the probe's lifetime; NULL: MODE_SAMPLE */
	enum mode mode;
	/* MODE_COUNT: nothing but the evaluator runs frames, as far as is known (see python_hidden) */
	bool plain;
	/* rate 0: no samples are taken. MODE_COUNT: interp_head in any case, 0: not known */
	struct probe_sampling sampling;
	struct pyp_native_types native; /* for builtins */
};

/*
 * MODE_COUNT: what was counted since the probe was opened, except what probe_counts_drop has taken
 * away. Code objects are numbers, which CODE_ID records in the ring explain. An array to be freed,
 * which calls under way may or may not be in yet.
 */
struct probe_count {
	struct pyp_edge edge;
	uint64_t calls;
};

#endif
