/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reference samples: samples a process briefly before its probes are attached, or after they are
 * detached, to learn how it spends its time undisturbed. They correct the times of a trace, see accuracy/solve.h.
 */
#ifndef PYPROF_SESSION_REFERENCE_H
#define PYPROF_SESSION_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "probe/probe.h"
#include "profile/profile.h"
#include "python/python.h"
#include "target/target.h"

/* The duration in ns: hundreds of samples of a busy thread. */
#define REFERENCE_NS UINT64_C(200000000)

struct reference;

/*
 * begin loads the programs; start attaches them, and waits for that unless is_ready. Samples are
 * taken until reference_end, reference_take or reference_free. py and t must remain valid until
 * start returns. *ret: to be freed by the caller. Return 0, or a negative errno; the trace then has
 * no reference samples, and works without.
 */
int reference_begin(const struct target *t, const struct python *py, struct reference **ret);
bool reference_is_ready(const struct reference *r);
int reference_start(struct reference *r);

/*
 * Changes the time between two samples at random, see probe_jitter. To be called every
 * REFERENCE_TURN_NS.
 */
#define REFERENCE_TURN_NS UINT64_C(21000000)
void reference_turn(struct reference *r, uint64_t now_ns);

/* Stops sampling and removes the timers; the samples taken so far remain readable. */
void reference_end(struct reference *r);

/* Stops sampling and passes the samples to the profile. Returns the number of samples. */
uint64_t reference_take(struct reference *r, struct profile *p);

/* r may be NULL. */
void reference_free(struct reference *r);
DEFINE_FREEP(struct reference, reference_free)

#endif
