/* SPDX-License-Identifier: BSD-2-Clause */
/* Closing descriptors that a forked process inherited. */
#ifndef PYPROF_BASE_DESCRIPTORS_H
#define PYPROF_BASE_DESCRIPTORS_H

#include <stddef.h>

#define DESCRIPTORS_KEPT 8u /* the maximum number of kept descriptors */

/* Close all descriptors from number `from` on, except the n in keep (negative entries are ignored).
 * Returns 0, -E2BIG if n is above DESCRIPTORS_KEPT, or the error of close_range(2). */
int descriptors_close_others(unsigned int from, const int *keep, size_t n);

#endif
