/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfer format of a timeline from the daemon to the client: records in the machine's byte order
 * (both run on one machine). The daemon appends them while it drains its rings, the client writes
 * files from them. A record is a struct timeline_rec, followed by text up to `size`.
 *
 * Order: BEGIN, RECENT if it is of the recent past, a SOURCE for each process, then events. A FUNC precedes the first record that
 * refers to its function. A THREAD precedes a thread's first frame, and follows its last one with
 * the thread's name at that time; it closes all open frames of the thread. END is last.
 */
#ifndef PYPROF_TIMELINE_WIRE_H
#define PYPROF_TIMELINE_WIRE_H

#include <stdint.h>

#include "stack/watch.h"

#define TIMELINE_VERSION 1u
#define TIMELINE_MIME	 "application/vnd.pyprof.timeline"
#define TIMELINE_TEXT_MAX                                                                          \
	((uint32_t)3 << 18) /* limit of a record's text, which has up to three
					       * names */

/* Lower values are enum watch_kind. */
enum timeline_type {
	TIMELINE_BEGIN = 64, /* func: version; ts: start; cpu: start in Unix time */
	TIMELINE_SOURCE,     /* tid: the process's pid */
	TIMELINE_FUNC,	     /* text: file, name, and qualified name or "", each NUL-terminated */
	TIMELINE_END,	  /* ts: end; count: dropped calls and returns; cpu: calls that are missing
		       * because the stack was too deep */
	TIMELINE_RECENT,  /* of the recent past: ts: its longest duration, ns; cpu: older calls and
			  * returns; count: those that were discarded for lack of memory; caller:
			  * calls that the trigger could not follow; text: the trigger or "" */
	TIMELINE_TRIGGER, /* the trigger's condition was met at ts; tid; func: the function or
			   * WATCH_NO_FUNC; text: how */
	TIMELINE_TYPE_MAX
};

struct timeline_rec {
	uint32_t size;	 /* of the whole record, bytes */
	uint16_t type;	 /* enum watch_kind or enum timeline_type */
	uint16_t source; /* index of the process */
	uint32_t tid;
	uint32_t func, caller; /* numbers of the source's functions; WATCH_NO_FUNC */
	int32_t line;	       /* FUNC */
	uint64_t ts;	       /* CLOCK_MONOTONIC, ns */
	uint64_t cpu;	       /* the thread's CPU time, ns */
	uint64_t count;	       /* DROPPED, END */
};

_Static_assert(sizeof(struct timeline_rec) == 48, "timeline_rec changed size");

#endif
