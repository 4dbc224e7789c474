/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares the events of a scratch process with those in script.h: kind, function, order in each
 * thread, and caller. Pure.
 *
 * It tracks stacks itself, and tolerates two harmless peculiarities of the interpreter: a repeated
 * entry (a specialized opcode that falls back), and the frame from which CPython calls __init__.
 */
#ifndef PYPROF_VERIFY_TRANSCRIPT_H
#define PYPROF_VERIFY_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "event/event.h"
#include "plan/plan.h"
#include "python/layout.h"
#include "verify/script.h"

struct transcript;

/* Get a name that is not in the events. Returns 0 and sets out, or a negative value. */
typedef int (*transcript_name_fn)(void *ctx, uint64_t code, char *out, size_t size);

struct transcript_opts {
	const struct layout *layout;
	const struct plan *plan;
	/* Expected events of the first and second thread; default: those of the test program */
	const struct script_part *parts[2];
	transcript_name_fn name; /* may be NULL */
	void *ctx;
};

struct transcript *transcript_new(const struct transcript_opts *opts);
void transcript_free(struct transcript *t);
DEFINE_FREEP(struct transcript, transcript_free)

void transcript_event(struct transcript *t, const struct event *e);

/* Do the events match, as far as none were lost? If not, why has the reason for the user. */
bool transcript_right(const struct transcript *t, char *why, size_t size);

/* The number of events compared, and a bit mask of the plan's sites that caused them: word 0 has
 * sites 0 to 63, and so on. */
#define TRANSCRIPT_WORDS ((PYP_ALL_SITES + 63) / 64)
uint64_t transcript_events(const struct transcript *t);
uint64_t transcript_sites(const struct transcript *t, unsigned int word);

/* Check the number of collections of each generation, and that each was as expected. If false: why. */
bool transcript_collections_right(const struct transcript *t,
				  const uint64_t counted[PYP_GC_GENERATIONS], char *why,
				  size_t size);

/* What the events amount to: a function's calls, as profilers count them. */
struct transcript_calls {
	char name[24];
	uint64_t calls, primitive;
};
size_t transcript_calls(const struct transcript *t, const struct transcript_calls **ret);

#endif
