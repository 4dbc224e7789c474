// SPDX-License-Identifier: BSD-2-Clause
/* The queue: bounds, order, counts; and the waits between attempts. */
#include "push/queue.h"

#include "harness/test.h"

static struct push_request *request(uint8_t id, size_t nbody)
{
	struct push_request *rq = calloc(1, sizeof(*rq));

	cr_assert(rq);
	rq->id[0] = id;
	rq->path = strdup("/");
	rq->body = calloc(1, nbody + 1);
	rq->nbody = nbody;
	return rq;
}

static void expect_next(struct push_queue *q, uint8_t id)
{
	const struct push_request *rq = push_queue_take(q);

	cr_assert(rq);
	cr_assert_eq(rq->id[0], id);
	cr_assert_null(push_queue_take(q), "only one is out at a time");
}

Test(push_queue, first_in_first_out)
{
	struct push_queue q;

	push_queue_init(&q, 1 << 20, 10);
	cr_assert_null(push_queue_take(&q));
	for (uint8_t i = 1; i <= 3; i++)
		push_queue_add(&q, request(i, 100));
	for (uint8_t i = 1; i <= 3; i++) {
		expect_next(&q, i);
		push_queue_done(&q);
	}
	cr_assert_eq(q.sent, 3);
	cr_assert_eq(q.count, 0);
	cr_assert_eq(q.bytes, 0);
	push_queue_deinit(&q);
	check_no_leaks();
}

Test(push_queue, oldest_is_dropped_by_count)
{
	struct push_queue q;

	push_queue_init(&q, 1 << 20, 3);
	for (uint8_t i = 1; i <= 5; i++)
		push_queue_add(&q, request(i, 10));
	cr_assert_eq(q.count, 3);
	cr_assert_eq(q.dropped[PUSH_DROP_FULL], 2);
	expect_next(&q, 3);
	push_queue_deinit(&q);
	cr_assert_eq(q.dropped[PUSH_DROP_ENDED], 3);
	cr_assert_eq(push_queue_dropped(&q), 5);
	check_no_leaks();
}

Test(push_queue, bytes_never_exceed_the_limit)
{
	const size_t limit = 20000;
	struct push_queue q;
	uint64_t added = 0;

	push_queue_init(&q, limit, 1000);
	for (int i = 0; i < 500; i++) {
		push_queue_add(&q, request((uint8_t)i, (size_t)(i * 37 % 5000)));
		added++;
		cr_assert(q.bytes <= limit);
		if (i % 7 == 0 && push_queue_take(&q))
			push_queue_return(&q);
		if (i % 11 == 0 && push_queue_take(&q))
			push_queue_done(&q);
		cr_assert_eq(added, q.sent + q.count + push_queue_dropped(&q));
	}
	cr_assert(q.count > 2);
	push_queue_deinit(&q);
	cr_assert_eq(q.bytes, 0);
	check_no_leaks();
}

Test(push_queue, too_large_leaves_the_others)
{
	struct push_queue q;

	push_queue_init(&q, 5000, 10);
	push_queue_add(&q, request(1, 10));
	push_queue_add(&q, request(2, 6000));
	cr_assert_eq(q.dropped[PUSH_DROP_TOO_LARGE], 1);
	expect_next(&q, 1);
	push_queue_deinit(&q);
	check_no_leaks();
}

/* As many as fit in the limits, but at least one; all go the same way. */
Test(push_queue, batches)
{
	struct push_queue q;

	push_queue_init(&q, 1 << 20, 1000);
	cr_assert_eq(push_queue_take_batch(&q, 10, 1000), 0);
	for (uint8_t i = 1; i <= 6; i++)
		push_queue_add(&q, request(i, 1000));
	cr_assert_eq(push_queue_take_batch(&q, 10, 1), 1);
	cr_assert_eq(push_queue_take_batch(&q, 10, 1), 0, "some are out");
	push_queue_return(&q);
	cr_assert_eq(push_queue_take_batch(&q, 10, 2500), 2);
	cr_assert(q.taken[0]->id[0] == 1 && q.taken[1]->id[0] == 2);
	push_queue_return(&q);
	cr_assert_eq(q.retried, 3);
	cr_assert_eq(push_queue_take_batch(&q, 3, 1 << 20), 3);
	cr_assert(q.taken[0]->id[0] == 1 && q.taken[2]->id[0] == 3);
	push_queue_done(&q);
	cr_assert_eq(q.sent, 3);
	cr_assert_eq(push_queue_take_batch(&q, 2, 1 << 20), 2);
	push_queue_drop(&q, PUSH_DROP_REFUSED);
	cr_assert_eq(q.dropped[PUSH_DROP_REFUSED], 2);
	cr_assert_eq(q.count, 1);
	expect_next(&q, 6);
	push_queue_deinit(&q);
	cr_assert_eq(q.bytes, 0);
	check_no_leaks();
}

Test(push_queue, batches_are_limited)
{
	struct push_queue q;

	push_queue_init(&q, 1 << 20, 1000);
	for (unsigned int i = 0; i < PUSH_BATCH_MAX + 1; i++)
		push_queue_add(&q, request((uint8_t)i, 1));
	cr_assert_eq(push_queue_take_batch(&q, SIZE_MAX, SIZE_MAX), PUSH_BATCH_MAX);
	push_queue_done(&q);
	cr_assert_eq(q.count, 1);
	push_queue_deinit(&q);
	check_no_leaks();
}

/* The one being sent may have been received, so it is not dropped for a newer one. */
Test(push_queue, the_one_taken_out_stays)
{
	struct push_queue q;

	push_queue_init(&q, 1 << 20, 2);
	push_queue_add(&q, request(1, 10));
	expect_next(&q, 1);
	for (uint8_t i = 2; i <= 4; i++)
		push_queue_add(&q, request(i, 10));
	cr_assert_eq(q.count, 2);
	push_queue_return(&q);
	cr_assert_eq(q.retried, 1);
	expect_next(&q, 1);
	push_queue_done(&q);
	expect_next(&q, 4);
	push_queue_drop(&q, PUSH_DROP_REFUSED);
	cr_assert_eq(q.dropped[PUSH_DROP_FULL], 2);
	cr_assert_eq(q.dropped[PUSH_DROP_REFUSED], 1);
	cr_assert_eq(q.count, 0);
	/* nothing is out: no effect */
	push_queue_done(&q);
	push_queue_return(&q);
	cr_assert_eq(q.sent, 1);
	push_queue_deinit(&q);
	check_no_leaks();
}

Test(push_backoff, doubles_up_to_a_limit)
{
	struct push_backoff low = {0}, high = {0};
	uint64_t step = PUSH_BACKOFF_FIRST_MS;

	for (int i = 0; i < 40; i++) {
		uint64_t least = push_backoff_next(&low, 0, 0);
		uint64_t most = push_backoff_next(&high, (uint32_t)(step / 2), 0);

		cr_assert_eq(least, step / 2, "%d: %llu", i, (unsigned long long)least);
		cr_assert_eq(most, step);
		step = step * 2 < PUSH_BACKOFF_MAX_MS ? step * 2 : PUSH_BACKOFF_MAX_MS;
	}
	push_backoff_reset(&low);
	cr_assert_eq(push_backoff_next(&low, 0, 0), PUSH_BACKOFF_FIRST_MS / 2);
}

Test(push_backoff, obeys_retry_after_within_limits)
{
	struct push_backoff b = {0};

	cr_assert_eq(push_backoff_next(&b, 0, 30), 30000);
	cr_assert_eq(push_backoff_next(&b, 1999, 30), 30999, "not all at the same moment");
	cr_assert_eq(push_backoff_next(&b, 0, UINT64_MAX), PUSH_RETRY_AFTER_MAX * 1000ull);
	for (int i = 0; i < 20; i++)
		(void)push_backoff_next(&b, 0, 0);
	cr_assert_eq(push_backoff_next(&b, 0, 1), PUSH_BACKOFF_MAX_MS / 2);
}

/* Verdicts by status */
Test(push_sink, status)
{
	static const struct {
		unsigned int status;
		enum push_result result;
	} of[] = {{200, PUSH_DONE},   {204, PUSH_DONE},	 {302, PUSH_RETRY}, {400, PUSH_REFUSE},
		  {401, PUSH_RETRY},  {403, PUSH_RETRY}, {404, PUSH_RETRY}, {413, PUSH_REFUSE},
		  {422, PUSH_REFUSE}, {429, PUSH_RETRY}, {500, PUSH_RETRY}, {503, PUSH_RETRY},
		  {100, PUSH_RETRY},  {999, PUSH_RETRY}};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct push_verdict v;

		push_judge_status(&(struct push_answer){.status = of[i].status}, &v);
		cr_assert_eq(v.result, of[i].result, "%u", of[i].status);
		cr_assert_eq(v.status, of[i].status);
	}
}

Test(push_sink, message_is_one_clean_line)
{
	static const char text[] = "no\nsuch\xff tenant", binary[] = "\x1b]0;title\x07";
	struct push_verdict v;

	push_judge_status(&(struct push_answer){.status = 400,
						.body = (const uint8_t *)text,
						.nbody = strlen(text)},
			  &v);
	cr_assert_str_eq(v.message, "HTTP 400: no such? tenant");
	push_judge_status(&(struct push_answer){.status = 503,
						.retry_after_s = 7,
						.body = (const uint8_t *)binary,
						.nbody = strlen(binary)},
			  &v);
	cr_assert_str_eq(v.message, "HTTP 503");
	cr_assert_eq(v.retry_after_s, 7);
	push_judge_status(&(struct push_answer){.error = "timed out"}, &v);
	cr_assert_str_eq(v.message, "timed out");
	cr_assert_eq(v.result, PUSH_RETRY);
}
