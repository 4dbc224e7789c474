/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Included by every unit test: Criterion and our own assertions. Criterion reports a leaking test as
 * passed, so tests that allocate end with check_no_leaks().
 */
#ifndef PYPROF_TESTS_HARNESS_TEST_H
#define PYPROF_TESTS_HARNESS_TEST_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitizer.h"

/* Assert that expr is 0; shows the value otherwise. */
#define assert_ok(expr)                                                                            \
	do {                                                                                       \
		long assert_ok_ = (long)(expr);                                                    \
		cr_assert(assert_ok_ == 0, "%s is %ld (%s), not 0", #expr, assert_ok_,             \
			  strerror(assert_ok_ < 0 ? (int)-assert_ok_ : 0));                        \
	} while (0)

/* Assert that expr is the error err, a negative errno. */
#define assert_err(expr, err)                                                                      \
	do {                                                                                       \
		long assert_err_ = (long)(expr);                                                   \
		cr_assert(assert_err_ == (long)(err), "%s is %ld, not %s", #expr, assert_err_,     \
			  #err);                                                                   \
	} while (0)

/* As assert_ok(), for a function that fills diag on errors: shows the diagnosis. */
#define assert_diag_ok(expr, diag)                                                                 \
	do {                                                                                       \
		long assert_ok_ = (long)(expr);                                                    \
		cr_assert(assert_ok_ == 0, "%s is %ld: %s; %s", #expr, assert_ok_, (diag)->msg,    \
			  (diag)->hint);                                                           \
	} while (0)

#define assert_bytes_eq(a, b, n)                                                                   \
	cr_assert(memcmp((a), (b), (n)) == 0, "%s and %s differ within %zu bytes", #a, #b,         \
		  (size_t)(n))

#if SANITIZER_ADDRESS
#include <sanitizer/lsan_interface.h>
/* Criterion's runner, which forks a process per test, sometimes leaks memory itself, so it is not
 * checked. A variable of its sandbox identifies test processes. */
__attribute__((weak)) int __lsan_is_turned_off(void)
{
	return !getenv("BXFI_MAP");
}
/* The last statement of a test body: everything allocated was freed. Does nothing without ASan. */
#define check_no_leaks()                                                                           \
	cr_assert(__lsan_do_recoverable_leak_check() == 0, "memory leaked, see above")
#else
#define check_no_leaks() ((void)0)
#endif

#endif
