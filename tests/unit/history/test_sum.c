// SPDX-License-Identifier: BSD-2-Clause
/* history/sum and history/gz: intervals packed, read back and added up. */
#include "history/sum.h"

#include <errno.h>

#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "history/gz.h"

static struct interval *interval_of(uint8_t id, uint32_t pid, uint64_t start, uint64_t cpu)
{
	const uint8_t bytes[INTERVAL_ID_BYTES] = {id, (uint8_t)pid};
	char text[160];
	struct snapshot *s;
	struct interval *iv;

	snprintf(text, sizeof(text),
		 "target %u\nthread %u %u worker\nmain a.py:1 0 0\n  f a.py:5 0 %llu\n", pid, pid,
		 pid + 1, (unsigned long long)cpu);
	s = snapshot_build(text);
	s->targets[0].mode = MODE_SAMPLE;
	s->targets[0].start_ns = start;
	s->targets[0].start_unix_ns = 1000000 + start;
	s->targets[0].end_unix_ns = 1000000 + start + 10;
	s->targets[0].estimate =
		(struct snapshot_estimate){.rate = 19, .period_ns = 5, .samples = 3};
	s->threads[0].start_ns = start;
	iv = interval_new(bytes, start, start + 10, s);
	cr_assert(iv);
	return iv;
}

static uint64_t cpu_of(const struct snapshot *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->nnodes; i++)
		sum += s->nodes[i].self[SNAPSHOT_CPU];
	return sum;
}

static struct snapshot *take(struct sum *sum)
{
	struct snapshot *s = NULL;
	struct diag diag = {0};

	assert_diag_ok(sum_take(sum, &s, &diag), &diag);
	cr_assert(snapshot_valid(s));
	return s;
}

/* More than are merged at a time. */
Test(sum, intervals_of_one_process_are_one_target)
{
	struct sum *sum = sum_new();
	struct diag diag = {0};
	struct snapshot *s;

	for (uint8_t i = 0; i < 200; i++)
		assert_diag_ok(sum_add(sum, interval_of(i, 42, 10u * i, 100u + i), &diag), &diag);
	cr_assert_eq(sum_count(sum), 200);
	s = take(sum);
	cr_assert_eq(s->ntargets, 1);
	cr_assert_eq(s->nthreads, 1);
	cr_assert_eq(s->nfuncs, 2);
	cr_assert_eq(cpu_of(s), 200 * 100 + 199 * 200 / 2);
	cr_assert_eq(s->targets[0].estimate.samples, 600);
	cr_assert_eq(s->targets[0].start_unix_ns, 1000000);
	cr_assert_eq(s->targets[0].end_unix_ns, 1000000 + 2000);
	snapshot_free(s);
	sum_free(sum);
	check_no_leaks();
}

Test(sum, two_processes_stay_apart)
{
	struct sum *sum = sum_new();
	struct diag diag = {0};
	struct snapshot *s;

	for (uint8_t i = 0; i < 10; i++) {
		assert_ok(sum_add(sum, interval_of(i, 42, 10u * (9u - i), 1), &diag));
		assert_ok(sum_add(sum, interval_of(i, 77, 10u * i, 2), &diag));
	}
	s = take(sum);
	cr_assert_eq(s->ntargets, 2);
	cr_assert_eq(s->nthreads, 2);
	cr_assert_eq(cpu_of(s), 30);
	cr_assert_eq(s->targets[0].start_unix_ns, 1000000, "the earliest, though added last");
	snapshot_free(s);
	sum_free(sum);
	check_no_leaks();
}

Test(sum, the_same_interval_counts_once)
{
	struct sum *sum = sum_new();
	struct diag diag = {0};
	struct snapshot *s;

	assert_ok(sum_add(sum, interval_of(1, 42, 0, 5), &diag));
	assert_ok(sum_add(sum, interval_of(1, 42, 0, 5), &diag));
	cr_assert_eq(sum_count(sum), 1);
	s = take(sum);
	cr_assert_eq(cpu_of(s), 5);
	snapshot_free(s);
	sum_free(sum);
	check_no_leaks();
}

Test(sum, modes_are_not_mixed)
{
	struct sum *sum = sum_new();
	struct interval *counted = interval_of(2, 42, 10, 5);
	struct diag diag = {0};

	counted->snapshot->targets[0].mode = MODE_COUNT;
	counted->snapshot->targets[0].estimate = (struct snapshot_estimate){0};
	assert_ok(sum_add(sum, interval_of(1, 42, 0, 5), &diag));
	assert_err(sum_add(sum, counted, &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	sum_free(sum);
	check_no_leaks();
}

/* ---- packed ---- */

struct packed {
	char *data;
	size_t n;
};

static void append(struct packed *to, struct interval *iv)
{
	struct diag diag = {0};
	void *data = NULL;
	size_t n = 0;

	assert_diag_ok(gz_pack_interval(iv, GZ_FAST, &data, &n, &diag), &diag);
	to->data = realloc(to->data, to->n + n);
	memcpy(to->data + to->n, data, n);
	to->n += n;
	free(data);
	interval_free(iv);
}

static int add_one(void *ctx, struct interval *iv, struct diag *diag)
{
	return sum_add(ctx, iv, diag);
}

Test(gz, packed_intervals_are_read_back)
{
	struct sum *sum = sum_new();
	struct packed p = {0};
	struct diag diag = {0};
	struct snapshot *s;

	for (uint8_t i = 0; i < 5; i++)
		append(&p, interval_of(i, 42, 10u * i, 100));
	assert_diag_ok(gz_unpack(p.data, p.n, "test", add_one, sum, &diag), &diag);
	cr_assert_eq(sum_count(sum), 5);
	s = take(sum);
	cr_assert_eq(cpu_of(s), 500);
	snapshot_free(s);
	sum_free(sum);
	free(p.data);
	check_no_leaks();
}

/* Every cut and every changed byte: an error, or what precedes it. */
Test(gz, damaged_bytes_are_refused)
{
	struct packed p = {0};

	append(&p, interval_of(1, 42, 0, 100));
	append(&p, interval_of(2, 42, 10, 100));
	for (size_t i = 1; i < p.n; i += 3) {
		struct sum *sum = sum_new();
		struct diag diag = {0};

		if (gz_unpack(p.data, i, "test", add_one, sum, &diag) == 0)
			cr_assert_eq(sum_count(sum), 1, "cut after %zu bytes", i);
		cr_assert_leq(sum_count(sum), 1);
		p.data[i] ^= 0x15;
		(void)gz_unpack(p.data, p.n, "test", add_one, sum, &diag);
		p.data[i] ^= 0x15;
		sum_free(sum);
	}
	free(p.data);
	check_no_leaks();
}
