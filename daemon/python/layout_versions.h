/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of layout_3_NN.c, for layout.c only. */
#ifndef PYPROF_PYTHON_LAYOUT_VERSIONS_H
#define PYPROF_PYTHON_LAYOUT_VERSIONS_H

#include "python/layout.h"

extern const struct layout layout_3_06;
extern const struct layout layout_3_07;
extern const struct layout layout_3_08;
extern const struct layout layout_3_09;
extern const struct layout layout_3_10;
extern const struct layout layout_3_11;
extern const struct layout layout_3_12;
extern const struct layout layout_3_13;
extern const struct layout layout_3_14;
extern const struct layout layout_3_15;

#endif
