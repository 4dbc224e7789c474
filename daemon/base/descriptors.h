/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process that was just forked keeps open of its parent's. */
#ifndef PYPROF_BASE_DESCRIPTORS_H
#define PYPROF_BASE_DESCRIPTORS_H

#include <stddef.h>

#define DESCRIPTORS_KEPT 8u /* no more than so many are kept */

/* Close all descriptors from number `from` on but the n of keep; negative ones there stand for none.
 * Returns 0 or a negative errno. */
int descriptors_close_others(unsigned int from, const int *keep, size_t n);

#endif
