/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where figures come from: what was traced, when, on which clock, and whether anything was lost.
 * Every format carries this, as the object below or as lines of text.
 */
#ifndef PYPROF_FORMAT_PROVENANCE_H
#define PYPROF_FORMAT_PROVENANCE_H

#include <jansson.h>

#include "format/format_opts.h"

/* An unsigned number as JSON has it: what does not fit 63 bits is the greatest that does. */
json_t *provenance_integer(uint64_t n);

/* A string as JSON has it: valid UTF-8, whatever it was; NULL: null. OOM: NULL. */
json_t *provenance_string(const char *s);

/* Nothing lost by this target? */
bool provenance_exact(const struct snapshot *s, const struct snapshot_target *t);

/* Calls and returns that were not counted. */
uint64_t provenance_lost(const struct snapshot_target *t);

/* The standard error of all samples together, as a share of them. */
double provenance_sampling_error(uint64_t samples);

/* Does the filter select this target? By thread: one that has it. For threads: view_selects. */
bool provenance_selects(const struct snapshot *s, const struct view_filter *filter,
			const struct snapshot_target *t);

/*
 * Everything about the selected targets, for machines. `format` says what the object is part of.
 * A new reference; OOM: NULL.
 */
json_t *provenance_json(const struct snapshot *s, const struct format_opts *o, const char *format);

/* Everything about the selected targets, for people: one call per line, values not yet escaped. */
typedef void (*provenance_line_fn)(void *ctx, const char *label, const char *value);
int provenance_lines(const struct snapshot *s, const struct format_opts *o, provenance_line_fn line,
		     void *ctx);

#endif
