/* SPDX-License-Identifier: BSD-2-Clause */
/* Squares, of which variances are made. */
#ifndef PYPROF_BASE_SQUARE_H
#define PYPROF_BASE_SQUARE_H

static inline double square(double x)
{
	return x * x;
}

#endif
