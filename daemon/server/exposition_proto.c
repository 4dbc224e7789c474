// SPDX-License-Identifier: BSD-2-Clause
/*
 * Metrics as protobuf messages: see exposition.h. A family's name and each of its metrics are packed as
 * messages of their own: concatenated, they are one message with the metrics joined.
 */
#include "server/exposition_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8_clean.h"
#include "server/exposition.pb-c.h"

#define SCHEMA	       3     /* 2^3 = HISTOGRAM_SCALE buckets per octave */
#define SECOND	       239   /* 8 * log2(1e9) = 239.18: the buckets between 1 ns and 1 s */
#define ZERO_THRESHOLD 1e-9  /* of bucket 0, s */
#define VALUE_MAX      1024u /* bytes of a label's value */
#define VARINT_MAX     10
#define LEAST	       4096 /* bytes that the buffer grows by */

_Static_assert(1u << SCHEMA == HISTOGRAM_SCALE, "buckets of the same width");

struct exposition_proto {
	ProtobufCBuffer base; /* must be first: callbacks receive a pointer to it */
	FILE *out;
	uint8_t *data;
	size_t n, cap;
	enum exposition_type type;
	char name[128];
	int err;
};

/* A histogram's parts; on the heap, because it is large. */
struct native {
	Exposition__Bucket bucket[EXPOSITION_CLASSIC];
	Exposition__Bucket *buckets[EXPOSITION_CLASSIC];
	Exposition__BucketSpan span, *spans[1];
	int64_t delta[HISTOGRAM_BUCKETS];
};

static void append_bytes(ProtobufCBuffer *base, size_t n, const uint8_t *data)
{
	struct exposition_proto *p = (struct exposition_proto *)base;

	if (n > p->cap - p->n) {
		const size_t cap = 2 * p->cap + n + LEAST;
		uint8_t *more = realloc(p->data, cap);

		if (!more) {
			p->err = -ENOMEM;
			return;
		}
		p->data = more;
		p->cap = cap;
	}
	memcpy(p->data + p->n, data, n);
	p->n += n;
}

struct exposition_proto *exposition_proto_new(FILE *out)
{
	struct exposition_proto *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->base.append = append_bytes;
	p->out = out;
	return p;
}

void exposition_proto_free(struct exposition_proto *p)
{
	if (!p)
		return;
	free(p->data);
	free(p);
}

static void append(struct exposition_proto *p, const Exposition__MetricFamily *part)
{
	exposition__metric_family__pack_to_buffer(part, &p->base);
}

void exposition_proto_flush(struct exposition_proto *p)
{
	uint8_t length[VARINT_MAX];
	size_t n = 0, rest = p->n;

	if (!rest)
		return;
	for (; rest >= 0x80; rest >>= 7)
		length[n++] = (uint8_t)(rest | 0x80);
	length[n++] = (uint8_t)rest;
	fwrite(length, 1, n, p->out);
	fwrite(p->data, 1, p->n, p->out);
	p->n = 0;
}

void exposition_proto_begin(struct exposition_proto *p, const struct exposition_family *family)
{
	Exposition__MetricFamily part = EXPOSITION__METRIC_FAMILY__INIT;

	exposition_proto_flush(p);
	p->type = family->type;
	snprintf(p->name, sizeof(p->name), "%s%s", family->name, exposition_suffix(family->type));
	part.name = p->name;
	part.help = (char *)family->help;
	part.type = family->type == EXPOSITION_COUNTER	   ? EXPOSITION__METRIC_TYPE__COUNTER
		    : family->type == EXPOSITION_HISTOGRAM ? EXPOSITION__METRIC_TYPE__HISTOGRAM
							   : EXPOSITION__METRIC_TYPE__GAUGE;
	append(p, &part);
}

static void append_metric(struct exposition_proto *p, const struct exposition_labels *labels,
			  Exposition__Metric *metric)
{
	Exposition__LabelPair pair[EXPOSITION_LABELS], *pairs[EXPOSITION_LABELS];
	char clean[EXPOSITION_LABELS][VALUE_MAX];
	Exposition__MetricFamily part = EXPOSITION__METRIC_FAMILY__INIT;

	for (size_t i = 0; i < labels->n; i++) {
		exposition__label_pair__init(&pair[i]);
		pair[i].name = (char *)labels->v[i].name;
		pair[i].value = (char *)utf8_clean(labels->v[i].value, clean[i], VALUE_MAX);
		pairs[i] = &pair[i];
	}
	metric->n_label = labels->n;
	metric->label = pairs;
	part.n_metric = 1;
	part.metric = &metric;
	append(p, &part);
}

void exposition_proto_value(struct exposition_proto *p, const struct exposition_labels *labels,
			    double value)
{
	Exposition__Metric metric = EXPOSITION__METRIC__INIT;
	Exposition__Counter counter = EXPOSITION__COUNTER__INIT;
	Exposition__Gauge gauge = EXPOSITION__GAUGE__INIT;

	counter.value = gauge.value = value;
	if (p->type == EXPOSITION_COUNTER)
		metric.counter = &counter;
	else
		metric.gauge = &gauge;
	append_metric(p, labels, &metric);
}

static void set_classic(struct native *n, const struct exposition_classic *c,
			Exposition__Histogram *h)
{
	for (uint32_t k = 0; k < EXPOSITION_CLASSIC; k++) {
		exposition__bucket__init(&n->bucket[k]);
		n->bucket[k].cumulative_count = c->n[k];
		n->bucket[k].upper_bound = c->upper_s[k];
		n->buckets[k] = &n->bucket[k];
	}
	h->n_bucket = EXPOSITION_CLASSIC;
	h->bucket = n->buckets;
	h->sample_count = c->count;
	h->sample_sum = (double)c->sum_ns / 1e9;
}

/* One span from the first to the last bucket that is not empty. Bucket 0 is the zero bucket. */
static void set_native(struct native *n, const struct histogram_sum *sum, Exposition__Histogram *h)
{
	uint32_t first = 1, end = HISTOGRAM_BUCKETS;
	int64_t before = 0;

	while (first < end && !sum->n[first])
		first++;
	while (end > first && !sum->n[end - 1])
		end--;
	for (uint32_t i = first; i < end; i++) {
		n->delta[i - first] = (int64_t)sum->n[i] - before;
		before = (int64_t)sum->n[i];
	}
	exposition__bucket_span__init(&n->span);
	n->span.offset = (int32_t)first - SECOND;
	n->span.length = end - first;
	n->spans[0] = &n->span;
	h->schema = SCHEMA;
	h->zero_threshold = ZERO_THRESHOLD;
	h->zero_count = sum->n[0];
	h->n_positive_span = end > first;
	h->positive_span = n->spans;
	h->n_positive_delta = end - first;
	h->positive_delta = n->delta;
}

void exposition_proto_histogram(struct exposition_proto *p, const struct exposition_labels *labels,
				const struct histogram_sum *sum)
{
	Exposition__Histogram histogram = EXPOSITION__HISTOGRAM__INIT;
	Exposition__Metric metric = EXPOSITION__METRIC__INIT;
	struct native *n = calloc(1, sizeof(*n));
	struct exposition_classic c;

	if (!n) {
		p->err = -ENOMEM;
		return;
	}
	exposition_classic(sum, &c);
	set_classic(n, &c, &histogram);
	set_native(n, sum, &histogram);
	metric.histogram = &histogram;
	append_metric(p, labels, &metric);
	free(n);
}

int exposition_proto_error(const struct exposition_proto *p)
{
	return p->err;
}
