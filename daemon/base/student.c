// SPDX-License-Identifier: BSD-2-Clause
/* Student's t by its expansion in 1 / (n - 1) (Abramowitz and Stegun, 26.7.5). */
#include "base/student.h"

double student_widened(double var, double n)
{
	const double z = 1.96, v = n - 1, z3 = z * z * z;
	double t = z + (z3 + z) / (4 * v) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * v * v);

	return var * (t / z) * (t / z);
}
