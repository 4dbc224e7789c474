/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ring bytes to events. Pure and total: any bytes give an event or a reason, nothing is read past
 * `size`, nothing is allocated.
 */
#ifndef PYPROF_EVENT_DECODE_H
#define PYPROF_EVENT_DECODE_H

#include <stddef.h>

#include "event/event.h"

/* Why a record was not understood; counted by reason. */
enum decode_error {
	DECODE_OK = 0,
	DECODE_SHORT, /* fewer bytes than its type needs */
	DECODE_TYPE,  /* unknown type */
	DECODE_FIELD, /* a field outside its range */
	DECODE_ERROR_MAX
};

/*
 * Decode the record at data (8-byte aligned, as the ring gives it) into *ret. On an error *ret is
 * untouched. Pointers in *ret point into data.
 */
enum decode_error decode_event(const void *data, size_t size, struct event *ret);

/* A word for the reason, never NULL. */
const char *decode_error_name(enum decode_error e);

#endif
