/* SPDX-License-Identifier: BSD-2-Clause */
/* Pyroscope's ingest API: a pprof profile as a multipart form. */
#ifndef PYPROF_PUSH_PYROSCOPE_H
#define PYPROF_PUSH_PYROSCOPE_H

#include "push/sink.h"

extern const struct push_kind push_pyroscope;

#endif
