// SPDX-License-Identifier: BSD-2-Clause
/* sampler: the periods that change at random have the mean rate that was asked for. */
#include "probe/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "harness/reports.h"
#include "harness/test.h"

static uint32_t some_random(unsigned int *seed)
{
	return random_below(seed, 1u << 30);
}

/* Samples per second of blocks of time, each of which restarts the timer */
static double rate_of(uint64_t period_ns, uint64_t block_ns)
{
	const unsigned int blocks = 200000;
	unsigned int seed = 7;
	uint64_t samples = 0;
	int ppm = 0;

	for (unsigned int i = 0; i < blocks; i++) {
		uint64_t period;

		ppm = sampler_next_rate(ppm, some_random(&seed));
		period = sampler_block_period(period_ns, block_ns, ppm);
		cr_assert(period > period_ns / 2 && period < 2 * period_ns);
		samples += block_ns / period;
	}
	return (double)samples / ((double)block_ns * blocks) * 1e9;
}

Test(sampler, the_mean_rate_stays)
{
	static const uint64_t rates[] = {1, 49, 99, 997, 999, 4000, 10000};

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		uint64_t period = sampler_period((uint32_t)rates[i]), block = 25000000;

		if (block < 16 * period)
			block = 16 * period;
		cr_assert_lt(fabs(rate_of(period, block) / (double)rates[i] - 1), 0.005,
			     "%d Hz: %.2f", (int)rates[i], rate_of(period, block));
	}
	check_no_leaks();
}

/* A program whose period is the sampling period, or a third of it: which places of it are sampled? */
static double share_of_first_sixth(uint64_t program_ns, uint64_t period_ns, bool jitter)
{
	const uint64_t block_ns = 25000000;
	uint64_t now = 12345, samples = 0, first = 0;
	unsigned int seed = 11;
	int ppm = 0;

	for (unsigned int block = 0; block < 400; block++) {
		uint64_t period = period_ns, end = now + block_ns;

		ppm = sampler_next_rate(ppm, some_random(&seed));
		if (jitter)
			period = sampler_block_period(period_ns, block_ns, ppm);
		for (uint64_t at = now + period; at <= end; at += period) {
			samples++;
			first += at % program_ns < program_ns / 6;
		}
		now = jitter ? end : now + block_ns / period_ns * period_ns;
	}
	return (double)first / (double)samples;
}

/* Short recordings have the right total, too: what one block has too much, the next one lacks. */
Test(sampler, deviations_cancel)
{
	unsigned int seed = 5;
	int ppm = 0, sum = 0;

	for (unsigned int i = 0; i < 1000; i++) {
		ppm = sampler_next_rate(ppm, some_random(&seed));
		cr_assert(abs(ppm) >= 20000 && abs(ppm) <= 120000);
		sum += ppm;
		cr_assert(i % 2 ? sum == 0 : sum > 0);
	}
	check_no_leaks();
}

Test(sampler, no_place_of_a_periodic_program_is_missed)
{
	const uint64_t period = sampler_period(999);

	for (unsigned int k = 1; k <= 6; k++) {
		double fixed = share_of_first_sixth(period / k, period, false);
		double ours = share_of_first_sixth(period / k, period, true);

		cr_assert_lt(fabs(ours - 1.0 / 6), 0.02, "a %uth of the period: %.3f", k, ours);
		cr_assert_gt(fabs(fixed - 1.0 / 6), 0.05, "the test shows nothing: %.3f", fixed);
	}
	check_no_leaks();
}
