/* SPDX-License-Identifier: BSD-2-Clause */
/* Suspended generators, coroutines and asynchronous generators (private to python/). */
#ifndef PYPROF_PYTHON_COROUTINES_H
#define PYPROF_PYTHON_COROUTINES_H

#include "python/values.h"

/* Returns the address of the frame of a generator or coroutine; 0: it is not one, or has ended. */
uint64_t coroutine_frame(struct values *v, uint64_t object);

/* Returns the object that a suspended frame awaits; 0: none, or the frame is running. */
uint64_t coroutine_awaits(struct values *v, uint64_t frame);

/*
 * Returns the object behind an object that only passes values on: the generator of __anext__(), the
 * future of an iterator over it. 0: it is none of these.
 */
uint64_t coroutine_inner(struct values *v, uint64_t object);

#endif
