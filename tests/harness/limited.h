/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile whose probes are limited, event by event: windows, stretches, samples, and its snapshots. Functions
 * are f0, f1, ... (harness/numbered.h).
 */
#ifndef PYPROF_TESTS_HARNESS_LIMITED_H
#define PYPROF_TESTS_HARNESS_LIMITED_H

#include "profile/profile_priv.h"

#define LIMITED_PERIOD 1000u /* ns that a sample stands for */

extern const struct cost limited_unknown_cost;
extern uint64_t limited_now;

/* A profile that is observed from now on, 1000, with walks of waits */
struct profile *limited_new(void);
/* Frees it, and checks for leaks. */
void limited_drop(struct profile *p);

/* A window or, with length 0, a stretch begins. */
void limited_begin(struct profile *p, uint64_t length_ns, bool whole);
/* Ends a window now. Returns what it covered. */
uint64_t limited_end(struct profile *p);
/* Ends a stretch now. */
void limited_keep(struct profile *p, bool light);

/* After ns, a thread calls a function, which is called by the frame `caller`; or returns; or passes a mark. */
void limited_enter(struct profile *p, uint32_t tid, uint64_t ns, uint64_t frame, unsigned int func,
		   uint64_t caller);
void limited_leave(struct profile *p, uint32_t tid, uint64_t ns, uint64_t frame);
void limited_mark(struct profile *p, uint32_t tid, uint64_t ns);
/* After 10 ns, thread 1 calls the C function at 0x7000, or returns: PYP_REC_C_ENTER and others. */
void limited_c_call(struct profile *p, uint8_t type, uint64_t frame);
/* A sample of f0, which calls f`func`. */
void limited_sample(struct profile *p, uint32_t tid, unsigned int func);

/* Adds its target to a snapshot. */
void limited_take_into(struct profile *p, struct snapshot *s, uint32_t pid);
/* A snapshot with what is not exact apart, or finished */
struct snapshot *limited_take(struct profile *p);
struct snapshot *limited_finished(struct profile *p);

bool limited_is_named(const struct snapshot *s, uint32_t node, const char *name);
/* Sums over the contexts of a function */
struct limited_sums {
	uint64_t calls, cpu, wall, rest_calls, rest_cpu;
	double x, y;
};
struct limited_sums limited_sums(const struct snapshot *s, const char *name);
/* What the function's contexts have in a column; NULL: all contexts */
uint64_t limited_column(const struct snapshot *s, const char *name, int column);
/*
 * Checks that in every thread, times add up, and in every context, reasons add up to the time off the CPU.
 */
void limited_check_sums(const struct snapshot *s);
/* Weighted sums over windows, of a function */
struct evidence_node limited_seen(const struct profile *p, unsigned int func);

#endif
