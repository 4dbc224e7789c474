/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that makes requests of intervals, because that takes longer than the event loop may be
 * blocked. Its input is bounded; what does not fit is counted.
 */
#ifndef PYPROF_PUSH_ENCODER_H
#define PYPROF_PUSH_ENCODER_H

#include "push/sink.h"

struct encoder;

#define ENCODER_JOBS_MAX 256u /* waiting */

/* Makes an interval, in the thread. */
struct encoder_job {
	/* *ret is owned by the caller; NULL: there is nothing to be sent. Frees ctx. */
	int (*make)(void *ctx, struct interval **ret, struct diag *diag);
	void (*cancel)(void *ctx); /* frees ctx; called instead of make */
	void *ctx;
};

/* The requests of one interval, in the order of the kinds; NULL: it could not be encoded. */
struct encoder_result {
	struct push_request **requests;
	size_t n;
	struct diag diag; /* of the last failure */
	struct encoder_result *next;
};

/* kinds: copied. *ret is owned by the caller. */
int encoder_new(const struct push_kind *const *kinds, size_t n, struct encoder **ret);
/* Waits for the job at work; cancels the others. */
void encoder_free(struct encoder *e);
DEFINE_FREEP(struct encoder, encoder_free)

/* Readable when there are results */
int encoder_fd(const struct encoder *e);
/* Takes the job. Returns false if too many wait: it was cancelled. */
bool encoder_add(struct encoder *e, const struct encoder_job *job);
/* The next result, owned by the caller; NULL: none. */
struct encoder_result *encoder_take(struct encoder *e);
void encoder_result_free(struct encoder_result *r); /* with the requests that were not taken */
/* Jobs that wait or are at work, and results that were not taken */
size_t encoder_pending(struct encoder *e);

#endif
