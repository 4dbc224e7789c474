/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics in the formats that Prometheus reads: OpenMetrics text, its older text format, and protobuf
 * messages, which alone have native histograms. A caller writes one family after the other; the first
 * error is kept. Pure.
 *
 * Histograms are of durations in ns and are written in seconds. Text has classic buckets, whose bounds
 * are powers of four nanoseconds, from 1 us to 69 s, so that their counts are exact. Native ones have
 * schema 3 as histogram.h, but bounds that are powers of 2^(1/8) seconds: a bucket becomes the one that
 * shares 82 % of it, so bounds are 1.6 % too high.
 */
#ifndef PYPROF_SERVER_EXPOSITION_H
#define PYPROF_SERVER_EXPOSITION_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/histogram.h"

enum exposition_form { EXPOSITION_OPENMETRICS, EXPOSITION_TEXT, EXPOSITION_PROTOBUF };

/* What the Accept header (NULL: none) prefers; OpenMetrics if it accepts none of them. */
enum exposition_form exposition_choose(const char *accept);
/* The Content-Type. Static. */
const char *exposition_mime(enum exposition_form form);

enum exposition_type {
	EXPOSITION_COUNTER, /* "_total" is added to its name */
	EXPOSITION_GAUGE,
	EXPOSITION_INFO, /* "_info" is added, the value is 1 */
	EXPOSITION_HISTOGRAM,
};

struct exposition_family {
	const char *name, *help;
	const char *unit; /* NULL: none; else the name ends in it */
	enum exposition_type type;
};

/* Values are any text without NUL; invalid UTF-8 is replaced. */
struct exposition_label {
	const char *name, *value;
};

#define EXPOSITION_LABELS 6

struct exposition_labels {
	struct exposition_label v[EXPOSITION_LABELS];
	size_t n;
};

struct exposition;

/* out is borrowed. NULL: out of memory. */
struct exposition *exposition_new(FILE *out, enum exposition_form form);
void exposition_free(struct exposition *e);

void exposition_begin(struct exposition *e, const struct exposition_family *family);
/* One sample of the present family. */
void exposition_count(struct exposition *e, const struct exposition_labels *labels, uint64_t value);
void exposition_seconds(struct exposition *e, const struct exposition_labels *labels, uint64_t ns);
void exposition_ratio(struct exposition *e, const struct exposition_labels *labels, double value);
void exposition_info(struct exposition *e, const struct exposition_labels *labels);
void exposition_histogram(struct exposition *e, const struct exposition_labels *labels,
			  const struct histogram_sum *sum);
/* Returns 0 or -ENOMEM, the first error. */
int exposition_end(struct exposition *e);

#endif
