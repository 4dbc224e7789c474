/* SPDX-License-Identifier: BSD-2-Clause */
/* OTLP profiles over HTTP: see otlp.c. */
#ifndef PYPROF_PUSH_OTLP_H
#define PYPROF_PUSH_OTLP_H

#include "push/sink.h"

extern const struct push_kind push_otlp;

#endif
