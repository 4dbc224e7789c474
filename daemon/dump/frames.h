/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills the frames of dumps, with names from an inspector (private to dump/). */
#ifndef PYPROF_DUMP_FRAMES_H
#define PYPROF_DUMP_FRAMES_H

#include <stdint.h>

#include "base/map.h"
#include "dump/dump.h"
#include "inspect/inspect.h"

/* The names of code objects, each read once per dump. All else zero: empty. */
struct frames {
	struct inspect *in; /* borrowed */
	struct map at;	    /* address → index */
	struct code_names *v;
	uint32_t n, room;
	uint32_t locals; /* how many more frames' local variables are to be read */
};

void frames_deinit(struct frames *f);

/* Sets the names of a frame that runs this code object. Returns 0 or -ENOMEM. *ret_known (may be
 * NULL): they could be read. */
int frames_fill(struct frames *f, uint64_t code, struct dump_frame *ret, bool *ret_known);

/* Reads the local variables of the frame at this address, unless it is moving. */
void frames_fill_locals(struct frames *f, uint64_t frame, uint64_t code, struct dump_frame *to);

#endif
