/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Provenance: what was traced, when, on which clock, and whether data was lost. Every format
 * includes it, as a JSON object or as lines of text.
 */
#ifndef PYPROF_FORMAT_PROVENANCE_H
#define PYPROF_FORMAT_PROVENANCE_H

#include <jansson.h>

#include "format/format_opts.h"

/* Returns an unsigned number as JSON, clamped to 63 bits. A new reference; NULL: out of memory. */
json_t *provenance_integer(uint64_t n);

/*
 * Returns a string as JSON, with invalid UTF-8 replaced; null for NULL. A new reference; NULL: out
 * of memory.
 */
json_t *provenance_string(const char *s);

/* Returns whether this target lost nothing, so that its counts are exact. */
bool provenance_exact(const struct snapshot *s, const struct snapshot_target *t);

/* Returns the number of calls and returns that were not counted. */
uint64_t provenance_lost(const struct snapshot_target *t);

/* Returns the standard error of the number of samples, as a fraction of that number. */
double provenance_sampling_error(uint64_t samples);

/*
 * Returns whether the filter selects this target. A filter by thread selects the target that owns
 * the thread. For threads, see view_selects.
 */
bool provenance_selects(const struct snapshot *s, const struct view_filter *filter,
			const struct snapshot_target *t);

/*
 * Returns all facts about the selected targets. `format` names the format that contains the object.
 * A new reference; NULL: out of memory.
 */
json_t *provenance_json(const struct snapshot *s, const struct format_opts *o, const char *format);

/*
 * Calls the function once per line of text about the selected targets. The values are not escaped
 * yet.
 */
typedef void (*provenance_line_fn)(void *ctx, const char *label, const char *value);
int provenance_lines(const struct snapshot *s, const struct format_opts *o, provenance_line_fn line,
		     void *ctx);

#endif
