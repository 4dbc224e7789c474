/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples of a process for a moment before its probes are attached: how it spends its time
 * undisturbed. They correct the times of a trace, see snapshot/reconcile.h.
 */
#ifndef PYPROF_SESSION_REFERENCE_H
#define PYPROF_SESSION_REFERENCE_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "probe/probe.h"
#include "profile/profile.h"
#include "python/python.h"
#include "target/target.h"

/* How long it takes: hundreds of samples of a busy thread. */
#define REFERENCE_NS UINT64_C(200000000)

struct reference;

/* Begin, and go on until it is freed. py and t are used in this call only. 0, or a negative errno:
 * there are no samples then, and no harm is done. */
int reference_start(const struct target *t, const struct python *py, struct reference **ret);

/* What comes from now on is not taken. */
void reference_end(struct reference *r);

/* End, and give the profile what was seen. Returns the number of samples. */
uint64_t reference_take(struct reference *r, struct profile *p);

/* NULL is allowed. */
void reference_free(struct reference *r);
DEFINE_FREEP(struct reference, reference_free)

#endif
