/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event by event, what was seen of a scratch program beside what script.h says must be seen: kind,
 * function, order in each thread, and who was running below. Pure.
 *
 * It keeps stacks of its own, and knows the interpreter's few habits that make no difference: the
 * same entry reported twice (a specialised opcode that falls back), the frame that CPython runs
 * __init__ from.
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

/* A name that did not come with the events: out is given the code's name; 0, or negative. */
typedef int (*transcript_name_fn)(void *ctx, uint64_t code, char *out, size_t size);

struct transcript_opts {
	const struct layout *layout;
	const struct plan *plan;
	/* What to expect of the first thread seen, and of the second. Default: the program's. */
	const struct script_part *parts[2];
	transcript_name_fn name; /* may be NULL */
	void *ctx;
};

struct transcript *transcript_new(const struct transcript_opts *opts);
void transcript_free(struct transcript *t);
DEFINE_FREEP(struct transcript, transcript_free)

void transcript_event(struct transcript *t, const struct event *e);

/* Was it what it had to be, as far as nothing was lost? If not: why, for people. */
bool transcript_right(const struct transcript *t, char *why, size_t size);

/* How many events were compared, and which sites of the plan (a bit each) they came from: sites 64 to
 * 127 and 128 to 191 are in words 1 and 2. */
#define TRANSCRIPT_WORDS ((PYP_ALL_SITES + 63) / 64)
uint64_t transcript_events(const struct transcript *t);
uint64_t transcript_sites(const struct transcript *t, unsigned int word);

/* Were there as many collections of each generation as these, and each as it had to be? If not: why. */
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
