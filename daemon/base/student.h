/* SPDX-License-Identifier: BSD-2-Clause */
/* Student's t, for errors of means of few values. */
#ifndef PYPROF_BASE_STUDENT_H
#define PYPROF_BASE_STUDENT_H

/* Widens a variance known from only n > 1 values, so that 1.96 errors still cover 95 %. */
double student_widened(double var, double n);

#endif
