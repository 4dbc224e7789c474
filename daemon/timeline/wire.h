/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A timeline on its way from the daemon to its client: records one after another, in the machine's
 * byte order (both are on one machine). The daemon writes them as fast as it drains its rings, the
 * client makes files of them. A record is a struct timeline_rec and `size` minus its size of text.
 *
 * First comes BEGIN, then a SOURCE for each process, then what happens; a FUNC comes before the
 * first record that names its function, a THREAD before a thread's first frame and, with what it is
 * called by then, behind its last: what is still open of the thread then is not. END comes last.
 */
#ifndef PYPROF_TIMELINE_WIRE_H
#define PYPROF_TIMELINE_WIRE_H

#include <stdint.h>

#include "stack/watch.h"

#define TIMELINE_VERSION  1u
#define TIMELINE_MIME	  "application/vnd.pyprof.timeline"
#define TIMELINE_TEXT_MAX ((uint32_t)3 << 18) /* of one record; there are three names in it */

/* Below these: enum watch_kind. */
enum timeline_type {
	TIMELINE_BEGIN = 64, /* func: the version; ts: the window's start; cpu: in Unix time */
	TIMELINE_SOURCE,     /* tid: its pid */
	TIMELINE_FUNC,	     /* text: file, name, qualified name or "", each with a 0 at its end */
	TIMELINE_END, /* ts: the window's end; count: calls and returns that were dropped; cpu:
			      * calls that were not told because the stack was too deep */
	TIMELINE_TYPE_MAX
};

struct timeline_rec {
	uint32_t size;	 /* of all of it */
	uint16_t type;	 /* enum watch_kind or enum timeline_type */
	uint16_t source; /* which process */
	uint32_t tid;
	uint32_t func, caller; /* numbers of the source's functions; WATCH_NO_FUNC */
	int32_t line;	       /* FUNC */
	uint64_t ts;	       /* CLOCK_MONOTONIC, ns */
	uint64_t cpu;	       /* the thread's CPU time, ns */
	uint64_t count;	       /* DROPPED, END */
};

_Static_assert(sizeof(struct timeline_rec) == 48, "timeline_rec changed size");

#endif
