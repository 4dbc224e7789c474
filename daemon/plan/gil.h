/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where an interpreter keeps its GIL, from the code that uses it. Pure. The file is hostile: every
 * instruction is decoded within its segment, and there is a bound on how many are.
 */
#ifndef PYPROF_PLAN_GIL_H
#define PYPROF_PLAN_GIL_H

struct image;
struct layout;
struct python_gil;

/* What cannot be found stays as it is: from 3.13 on _Py_DebugOffsets says it, and nothing is sought. */
void gil_find(const struct image *img, const struct layout *l, struct python_gil *ret);

#endif
