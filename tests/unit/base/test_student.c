// SPDX-License-Identifier: BSD-2-Clause
/* Student's factors for 1, 3 and 10 degrees of freedom, by an expansion that is off for the first. */
#include "base/student.h"

#include "harness/test.h"

Test(student, few_values_widen_errors)
{
	cr_assert_float_eq(student_widened(1, 2), 13.3265650, 1e-6);
	cr_assert_float_eq(student_widened(1, 4), 2.44448250, 1e-6);
	cr_assert_float_eq(student_widened(2, 11), 2 * 1.28922754, 1e-6);
}
