// SPDX-License-Identifier: BSD-2-Clause
/* server/exposition: the three formats, the choice between them, and histograms in each. */
#include "server/exposition.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"
#include "server/exposition.pb-c.h"

#define PROTOBUF                                                                                   \
	"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"                 \
	"encoding=delimited"

Test(exposition, choice)
{
	static const struct {
		const char *accept;
		enum exposition_form form;
	} cases[] = {
		{NULL, EXPOSITION_OPENMETRICS},
		{"", EXPOSITION_OPENMETRICS},
		{"*/*", EXPOSITION_OPENMETRICS},
		{"text/html, image/*", EXPOSITION_OPENMETRICS},
		{"text/html,application/xhtml+xml,*/*;q=0.8", EXPOSITION_OPENMETRICS},
		{"text/plain", EXPOSITION_TEXT},
		{"TEXT/Plain;version=0.0.4", EXPOSITION_TEXT},
		{"text/*", EXPOSITION_TEXT},
		{"text/plainer", EXPOSITION_OPENMETRICS},
		{"text/plain;q=0, */*;q=0.1", EXPOSITION_OPENMETRICS},
		{"application/openmetrics-text;version=1.0.0;q=0.5, text/plain", EXPOSITION_TEXT},
		/* Prometheus 2.42, and with native histograms */
		{"application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
		 "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		 EXPOSITION_OPENMETRICS},
		{PROTOBUF ",application/openmetrics-text;version=1.0.0;q=0.8,"
			  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		 EXPOSITION_PROTOBUF},
		{"text/plain;q=0.3 , " PROTOBUF " ; q=0.6", EXPOSITION_PROTOBUF},
		{"application/vnd.google.protobuf;encoding=text, text/plain;q=0.1",
		 EXPOSITION_TEXT},
		{"application/vnd.google.protobuf;", EXPOSITION_OPENMETRICS},
		{";;;,,,; q=,q=1", EXPOSITION_OPENMETRICS},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert(exposition_choose(cases[i].accept) == cases[i].form, "%s",
			  cases[i].accept);
}

/* ---- what is written ---- */

static struct histogram_sum sum;

/* One family of each type. */
static char *write_all(enum exposition_form form, size_t *ret_size)
{
	const struct exposition_labels labels = {{{"pid", "42"}, {"function", "a\"b\\c\nd\xff"}},
						 2};
	struct exposition *e;
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_size);

	e = exposition_new(f, form);
	exposition_begin(e, &(struct exposition_family){"x_seconds", "Help.", "seconds",
							EXPOSITION_COUNTER});
	exposition_seconds(e, &labels, 1500000000);
	exposition_begin(e, &(struct exposition_family){"y", "Help y.", NULL, EXPOSITION_GAUGE});
	exposition_count(e, &(struct exposition_labels){.n = 0}, 7);
	exposition_begin(e, &(struct exposition_family){"z", "Help z.", NULL, EXPOSITION_INFO});
	exposition_info(e, &labels);
	exposition_begin(e, &(struct exposition_family){"h_seconds", "Help h.", "seconds",
							EXPOSITION_HISTOGRAM});
	exposition_histogram(e, &labels, &sum);
	assert_ok(exposition_end(e));
	exposition_free(e);
	fclose(f);
	return text;
}

static void add(uint64_t ns, uint64_t n)
{
	sum.n[histogram_bucket(ns)] += n;
	sum.count += n;
}

#define LABELS "{pid=\"42\",function=\"a\\\"b\\\\c\\nd?\"}"

Test(exposition, text)
{
	size_t size;
	char *text;

	add(1000, 3);	    /* up to 2^10 ns */
	add(5000000, 2);    /* 5 ms, up to 2^24 ns */
	add(UINT64_MAX, 1); /* beyond all bounds */
	text = write_all(EXPOSITION_OPENMETRICS, &size);
	cr_assert(strstr(text, "# TYPE x_seconds counter\n# UNIT x_seconds seconds\n"
			       "# HELP x_seconds Help.\nx_seconds_total" LABELS " 1.500000000\n"),
		  "%s", text);
	cr_assert(strstr(text, "# TYPE y gauge\n# HELP y Help y.\ny 7\n"), "%s", text);
	cr_assert(strstr(text, "# TYPE z info\n# HELP z Help z.\nz_info" LABELS " 1\n"), "%s",
		  text);
	cr_assert(strstr(text, "c\\nd?\",le=\"0.000001024\"} 3\n"), "%s", text);
	cr_assert(strstr(text, ",le=\"0.004194304\"} 3\n"), "%s", text);
	cr_assert(strstr(text, ",le=\"0.016777216\"} 5\n"), "%s", text);
	cr_assert(strstr(text, ",le=\"68.719476736\"} 5\n"), "%s", text);
	cr_assert(strstr(text, ",le=\"+Inf\"} 6\n"), "%s", text);
	cr_assert(strstr(text, "h_seconds_count" LABELS " 6\n"), "%s", text);
	cr_assert_str_eq(text + size - 6, "# EOF\n");
	free(text);
	text = write_all(EXPOSITION_TEXT, &size);
	cr_assert(strstr(text, "# TYPE x_seconds_total counter\n# HELP x_seconds_total Help.\n"
			       "x_seconds_total" LABELS " 1.500000000\n"),
		  "%s", text);
	cr_assert(strstr(text, "# TYPE z_info gauge\n"), "%s", text);
	cr_assert(!strstr(text, "# UNIT") && !strstr(text, "# EOF"));
	free(text);
	check_no_leaks();
}

/* ---- protobuf: decoded again ---- */

static size_t varint(const uint8_t **p)
{
	size_t ret = 0;

	for (int shift = 0;; shift += 7) {
		ret |= (size_t)(**p & 0x7f) << shift;
		if (!(*(*p)++ & 0x80))
			return ret;
	}
}

/* The i-th message; the caller frees it. */
static Exposition__MetricFamily *family_at(const char *text, size_t size, size_t i)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + size;
	Exposition__MetricFamily *f;

	for (;; i--) {
		size_t n;

		cr_assert(p < end);
		n = varint(&p);
		cr_assert(n <= (size_t)(end - p));
		if (i == 0) {
			f = exposition__metric_family__unpack(NULL, n, p);
			cr_assert(f);
			return f;
		}
		p += n;
	}
}

Test(exposition, protobuf)
{
	Exposition__MetricFamily *f;
	size_t size;
	char *text = write_all(EXPOSITION_PROTOBUF, &size);

	f = family_at(text, size, 0);
	cr_assert_str_eq(f->name, "x_seconds_total");
	cr_assert(f->type == EXPOSITION__METRIC_TYPE__COUNTER && f->n_metric == 1);
	cr_assert(f->metric[0]->counter->value == 1.5 && !f->metric[0]->gauge);
	cr_assert(f->metric[0]->n_label == 2);
	cr_assert_str_eq(f->metric[0]->label[1]->name, "function");
	cr_assert_str_eq(f->metric[0]->label[1]->value, "a\"b\\c\nd?");
	exposition__metric_family__free_unpacked(f, NULL);
	f = family_at(text, size, 1);
	cr_assert(f->type == EXPOSITION__METRIC_TYPE__GAUGE && f->metric[0]->gauge->value == 7);
	exposition__metric_family__free_unpacked(f, NULL);
	f = family_at(text, size, 2);
	cr_assert_str_eq(f->name, "z_info");
	cr_assert(f->metric[0]->gauge->value == 1);
	exposition__metric_family__free_unpacked(f, NULL);
	f = family_at(text, size, 3);
	cr_assert(f->type == EXPOSITION__METRIC_TYPE__HISTOGRAM);
	cr_assert(f->metric[0]->histogram->sample_count == 0, "empty");
	cr_assert(f->metric[0]->histogram->n_positive_span == 0);
	exposition__metric_family__free_unpacked(f, NULL);
	free(text);
	check_no_leaks();
}

/* Each value lies in the native bucket that it is counted in, or less than 1.6 % outside. */
Test(exposition, native_buckets)
{
	static const uint64_t values[] = {
		2,	 3,	    999,	1000,	    1024,
		1000000, 123456789, 1000000000, 7777777777, UINT64_C(1) << 62};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		Exposition__MetricFamily *f;
		const Exposition__Histogram *h;
		double seconds = (double)values[i] / 1e9, upper, lower;
		size_t size;
		char *text;

		sum = (struct histogram_sum){0};
		add(values[i], 3);
		text = write_all(EXPOSITION_PROTOBUF, &size);
		f = family_at(text, size, 3);
		h = f->metric[0]->histogram;
		cr_assert(h->schema == 3 && h->n_positive_span == 1 && h->n_positive_delta == 1);
		cr_assert(h->positive_span[0]->length == 1 && h->positive_delta[0] == 3);
		upper = exp2(h->positive_span[0]->offset / 8.0);
		lower = exp2((h->positive_span[0]->offset - 1) / 8.0);
		cr_assert(seconds <= upper && seconds > lower / 1.016, "%g: %g to %g", seconds,
			  lower, upper);
		cr_assert(h->sample_sum > seconds / 1.045 * 3 &&
			  h->sample_sum < seconds * 1.045 * 3);
		exposition__metric_family__free_unpacked(f, NULL);
		free(text);
	}
	check_no_leaks();
}

/* Gaps between buckets are buckets without values; unknown durations are in the zero bucket. */
Test(exposition, native_counts)
{
	Exposition__MetricFamily *f;
	const Exposition__Histogram *h;
	uint64_t count = 0;
	int64_t n = 0;
	size_t size;
	char *text;

	add(0, 4);
	add(1000, 5);
	add(1000000, 2);
	text = write_all(EXPOSITION_PROTOBUF, &size);
	f = family_at(text, size, 3);
	h = f->metric[0]->histogram;
	cr_assert(h->zero_count == 4 && h->zero_threshold == 1e-9 && h->sample_count == 11);
	cr_assert(h->n_positive_delta == h->positive_span[0]->length);
	for (size_t i = 0; i < h->n_positive_delta; i++) {
		n += h->positive_delta[i];
		cr_assert(n == (i == 0 ? 5 : i + 1 == h->n_positive_delta ? 2 : 0));
		count += (uint64_t)n;
	}
	cr_assert(count + h->zero_count == h->sample_count);
	cr_assert(h->n_bucket == 14 && h->bucket[0]->cumulative_count == 9);
	cr_assert(h->bucket[13]->cumulative_count == 11);
	exposition__metric_family__free_unpacked(f, NULL);
	free(text);
	check_no_leaks();
}
