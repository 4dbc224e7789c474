/* SPDX-License-Identifier: BSD-2-Clause */
/* Squares, of which variances are made. */
#ifndef PYPROF_BASE_SQUARE_H
#define PYPROF_BASE_SQUARE_H

static inline double square(double x)
{
	return x * x;
}

/* The sum of (z - ratio x)^2, at least 0, by sums of z^2, z x and x^2: how far pairs are from their ratio */
static inline double square_residual(double z2, double zx, double x2, double ratio)
{
	const double sum = z2 - 2 * ratio * zx + square(ratio) * x2;

	return sum > 0 ? sum : 0;
}

#endif
