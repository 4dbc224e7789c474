/* SPDX-License-Identifier: BSD-2-Clause */
/* The one place that says which version this is. */
#ifndef PYPROF_VERSION_H
#define PYPROF_VERSION_H

#define PYPROF_VERSION "0.1.0"

#endif
