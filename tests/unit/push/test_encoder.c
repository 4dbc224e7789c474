// SPDX-License-Identifier: BSD-2-Clause
/* The encoding thread: order, failures, bounds, and its end with work left. */
#include "push/encoder.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "harness/patience.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "push/kinds.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static int cancelled;

static int make(void *ctx, struct interval **ret, struct diag *diag)
{
	long number = (long)(intptr_t)ctx;
	uint8_t id[INTERVAL_ID_BYTES] = {(uint8_t)number};

	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	if (number == 0)
		return diag_set(diag, -EIO, PYP_EXIT_FAILURE, "", "as told");
	if (number != 1)
		*ret = interval_new(id, 1, 2,
				    snapshot_build("target 42\nthread 42 43 w\nmain a.py:1 1 9\n"));
	return 0;
}

static void cancel(void *ctx)
{
	(void)ctx;
	cancelled++;
}

static bool add(struct encoder *e, long number)
{
	return encoder_add(
		e, &(struct encoder_job){.make = make, .cancel = cancel, .ctx = (void *)number});
}

static struct encoder *start(void)
{
	struct encoder *e = NULL;

	assert_ok(encoder_new(push_kinds, 2, &e));
	return e;
}

static struct encoder_result *wait_for(struct encoder *e)
{
	struct pollfd p = {.fd = encoder_fd(e), .events = POLLIN};
	struct encoder_result *r;

	while (!(r = encoder_take(e)))
		cr_assert_eq(poll(&p, 1, patience_left_ms()), 1);
	return r;
}

Test(push_encoder, results_in_order)
{
	struct encoder *e = start();

	for (long i = 2; i < 12; i++)
		cr_assert(add(e, i));
	for (uint8_t i = 2; i < 12; i++) {
		struct encoder_result *r = wait_for(e);

		cr_assert_eq(r->n, 2);
		cr_assert_eq(r->requests[0]->id[0], i);
		cr_assert_eq(r->requests[1]->id[0], i);
		encoder_result_free(r);
	}
	cr_assert_eq(encoder_pending(e), 0);
	encoder_free(e);
	check_no_leaks();
}

Test(push_encoder, failures_are_results_and_nothing_is_none)
{
	struct encoder *e = start();
	struct encoder_result *r;

	cr_assert(add(e, 1));
	cr_assert(add(e, 0));
	r = wait_for(e);
	cr_assert_null(r->requests[0]);
	cr_assert_str_eq(r->diag.msg, "as told");
	encoder_result_free(r);
	cr_assert_eq(encoder_pending(e), 0);
	encoder_free(e);
	check_no_leaks();
}

Test(push_encoder, bounded_and_cancelled_at_the_end)
{
	struct encoder *e = start();
	unsigned int taken = 0;

	pthread_mutex_lock(&gate);
	while (add(e, 5))
		taken++;
	cr_assert(taken >= ENCODER_JOBS_MAX && taken <= ENCODER_JOBS_MAX + 1);
	cr_assert_eq(cancelled, 1, "the one that did not fit");
	pthread_mutex_unlock(&gate);
	encoder_free(e);
	cr_assert(cancelled >= 1);
	check_no_leaks();
}
