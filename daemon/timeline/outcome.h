/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a timeline of the recent past ended, as the client knows it from the records: how much was kept
 * and discarded, what it waited for, and what happened. Private to timeline/.
 */
#ifndef PYPROF_TIMELINE_OUTCOME_H
#define PYPROF_TIMELINE_OUTCOME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeline/trigger.h"
#include "timeline/wire.h"

/* Zeroed: everything was to be recorded. Texts are valid UTF-8. */
struct outcome {
	bool recent;
	uint64_t keep_ns;
	uint64_t older, beyond_size;  /* calls and returns, see recent.h */
	uint32_t refused;	      /* calls that the trigger could not follow */
	char condition[TRIGGER_TEXT]; /* "": none */
	bool met;
	uint64_t ts;
	uint32_t pid, tid;
	char what[512];
};

/* Take RECENT or TRIGGER; pid: of the TRIGGER's source. -EBADMSG: it is invalid. */
int outcome_recent(struct outcome *o, const struct timeline_rec *r, const char *text, size_t n);
int outcome_trigger(struct outcome *o, const struct timeline_rec *r, uint32_t pid, const char *text,
		    size_t n);

/* For the file, described in packaging/doc/formats.md; the caller owns the result. NULL: out of
 * memory. */
json_t *outcome_json(const struct outcome *o, uint64_t from_ns, uint64_t from_unix_ns);

#endif
