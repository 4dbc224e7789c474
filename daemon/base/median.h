/* SPDX-License-Identifier: BSD-2-Clause */
/* What is usual among values some of which are disturbed. All functions sort the values. */
#ifndef PYPROF_BASE_MEDIAN_H
#define PYPROF_BASE_MEDIAN_H

#include <stddef.h>
#include <stdlib.h>

static inline int median_compare(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* The median of n > 0 values: the upper one of two */
static inline double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), median_compare);
	return v[n / 2];
}

/* The mean of n > 0 values without the lowest and the highest quarter */
static inline double median_mean(double *v, size_t n)
{
	const size_t quarter = n / 4;
	double sum = 0;

	(void)median(v, n);
	for (size_t i = quarter; i < n - quarter; i++)
		sum += v[i];
	return sum / (double)(n - 2 * quarter);
}

#endif
