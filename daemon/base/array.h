/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays that grow by doubling. */
#ifndef PYPROF_BASE_ARRAY_H
#define PYPROF_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* The usual `first` */
#define ARRAY_FIRST 256u

/*
 * Makes room for `need` (at least 1) elements of `size` bytes in the array v (NULL: empty), which
 * has room for *room; the first time for at least `first`. New elements are all zero bytes. Returns
 * the array, which may have moved, or NULL if there is no memory: then v and *room are unchanged,
 * and v remains the caller's.
 */
void *array_room(void *v, uint32_t *room, uint32_t need, uint32_t first, size_t size)
	__attribute__((warn_unused_result));

#endif
