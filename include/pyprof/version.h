/* SPDX-License-Identifier: BSD-2-Clause */
/* The version, defined only here. */
#ifndef PYPROF_VERSION_H
#define PYPROF_VERSION_H

#define PYPROF_VERSION "0.1.0"

#endif
