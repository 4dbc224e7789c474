// SPDX-License-Identifier: BSD-2-Clause
/* Sums of kept intervals: see kept.h. */
#include "harness/kept.h"

#include <math.h>
#include <unistd.h>

#include "harness/test.h"

#define Z	   5.7
#define RESOLUTION 0.02 /* of two readings of /proc/stat, s */

int64_t kept_sum(const json_t *list, const char *key)
{
	const json_t *v = json_object_get(list, "intervals"), *iv;
	int64_t sum = 0;
	size_t i;

	json_array_foreach(v, i, iv) sum += json_integer_value(json_object_get(iv, key));
	return sum;
}

double kept_stolen_s(void)
{
	unsigned long long v[8] = {0};
	FILE *f = fopen("/proc/stat", "re");

	cr_assert(f);
	cr_assert_eq(fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2],
			    &v[3], &v[4], &v[5], &v[6], &v[7]),
		     8);
	fclose(f);
	return (double)v[7] / (double)sysconf(_SC_CLK_TCK);
}

void kept_check_sum(const json_t *list, unsigned int rate, double cpu_s, double stolen_s)
{
	const double samples = (double)kept_sum(list, "samples");
	const double kept = (double)kept_sum(list, "cpu_ns") / 1e9;
	const double error = Z * sqrt(samples) / rate;

	cr_assert_gt(samples, 100);
	cr_assert(kept < cpu_s + error && kept > cpu_s - error - stolen_s - RESOLUTION,
		  "%.3f s in intervals, %.3f s of CPU time, %.3f s stolen", kept, cpu_s, stolen_s);
}
