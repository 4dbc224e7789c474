/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ring bytes to events. Pure and total: any bytes result in an event or an error. Reads nothing
 * beyond `size` and allocates nothing.
 */
#ifndef PYPROF_EVENT_DECODE_H
#define PYPROF_EVENT_DECODE_H

#include <stddef.h>

#include "event/event.h"

/* Why a record was rejected; counted by reason. */
enum decode_error {
	DECODE_OK = 0,
	DECODE_SHORT, /* fewer bytes than its type needs */
	DECODE_TYPE,  /* unknown type */
	DECODE_FIELD, /* a field outside its range */
	DECODE_ERROR_MAX
};

/*
 * Decode the record at data (8-byte aligned, as in the ring) into *ret, whose pointers point into
 * data. On an error *ret is unchanged.
 */
enum decode_error decode_event(const void *data, size_t size, struct event *ret);

/* The error's name, never NULL */
const char *decode_error_name(enum decode_error e);

#endif
