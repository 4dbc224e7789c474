/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a test needs of the machine. Asked by trying; a test whose needs are not met is skipped with
 * the reason, or fails if PYPROF_TEST_REQUIRE names the need: a run that skipped everything is
 * worth nothing where it ought to have run.
 */
#ifndef PYPROF_TESTS_HARNESS_CAPS_H
#define PYPROF_TESTS_HARNESS_CAPS_H

/* Root (or the capabilities) and a kernel that takes our probes. The first line of a test. */
void caps_require_bpf(void);

#endif
