/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locates an interpreter's GIL by the code that uses it. Pure. The file may be hostile: every
 * instruction is decoded within its segment, and their number is limited.
 */
#ifndef PYPROF_PLAN_GIL_H
#define PYPROF_PLAN_GIL_H

struct image;
struct layout;
struct python_gil;

/*
 * Fills *ret; leaves unchanged what cannot be found. From 3.13 on _Py_DebugOffsets has the
 * location, and nothing is searched.
 */
void gil_find(const struct image *img, const struct layout *l, struct python_gil *ret);

#endif
