/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requirements of a test on the machine, checked by trying. A test whose requirements are not met
 * is skipped with the reason, or fails if PYPROF_TEST_REQUIRE names the requirement, so that CI
 * cannot pass by skipping tests.
 */
#ifndef PYPROF_TESTS_HARNESS_CAPS_H
#define PYPROF_TESTS_HARNESS_CAPS_H

#include <stdbool.h>

/*
 * Require root (or the capabilities) and a kernel that accepts the probes; otherwise skip or fail
 * the test. Call it first in a test.
 */
void caps_require_bpf(void);

/*
 * Returns whether this is a virtual machine. If its hypervisor handles page tables in software, a CPU may not
 * see for tens of milliseconds what another one has changed.
 */
bool caps_virtual(void);

#endif
