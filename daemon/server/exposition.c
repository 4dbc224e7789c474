// SPDX-License-Identifier: BSD-2-Clause
/*
 * Metrics as text: see exposition.h. Each family is complete (TYPE, UNIT, HELP, all samples) before the
 * next begins; OpenMetrics ends with # EOF. The older format has no type for information, and names
 * what is in the lines: the suffix, too.
 */
#include "server/exposition_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8_clean.h"

struct exposition {
	FILE *out;
	enum exposition_form form;
	struct exposition_family family;
	struct exposition_proto *proto; /* NULL: text */
};

static const char *const types[] = {
	[EXPOSITION_COUNTER] = "counter",
	[EXPOSITION_GAUGE] = "gauge",
	[EXPOSITION_INFO] = "info",
	[EXPOSITION_HISTOGRAM] = "histogram",
};

const char *exposition_suffix(enum exposition_type type)
{
	return type == EXPOSITION_COUNTER ? "_total" : type == EXPOSITION_INFO ? "_info" : "";
}

struct exposition *exposition_new(FILE *out, enum exposition_form form)
{
	struct exposition *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->out = out;
	e->form = form;
	if (form != EXPOSITION_PROTOBUF)
		return e;
	e->proto = exposition_proto_new(out);
	if (e->proto)
		return e;
	free(e);
	return NULL;
}

void exposition_free(struct exposition *e)
{
	if (e)
		exposition_proto_free(e->proto);
	free(e);
}

void exposition_begin(struct exposition *e, const struct exposition_family *family)
{
	const bool plain = e->form == EXPOSITION_TEXT;
	const char *suffix = plain ? exposition_suffix(family->type) : "";
	const char *type = plain && family->type == EXPOSITION_INFO ? "gauge" : types[family->type];

	e->family = *family;
	if (e->proto) {
		exposition_proto_begin(e->proto, family);
		return;
	}
	fprintf(e->out, "# TYPE %s%s %s\n", family->name, suffix, type);
	if (family->unit && !plain)
		fprintf(e->out, "# UNIT %s %s\n", family->name, family->unit);
	fprintf(e->out, "# HELP %s%s %s\n", family->name, suffix, family->help);
}

/* A label's value, without quotes */
static void put_escaped(FILE *out, const char *s)
{
	char clean[1024];

	for (const char *p = utf8_clean(s, clean, sizeof(clean)); *p; p++) {
		if (*p == '\n') {
			fputs("\\n", out);
			continue;
		}
		if (*p == '"' || *p == '\\')
			putc('\\', out);
		putc(*p, out);
	}
}

/* The beginning of a line. le: the last label; NULL: none. */
static void put_name(struct exposition *e, const char *suffix,
		     const struct exposition_labels *labels, const char *le)
{
	fprintf(e->out, "%s%s%s", e->family.name, suffix, labels->n || le ? "{" : "");
	for (size_t i = 0; i < labels->n; i++) {
		fprintf(e->out, "%s%s=\"", i ? "," : "", labels->v[i].name);
		put_escaped(e->out, labels->v[i].value);
		putc('"', e->out);
	}
	if (le)
		fprintf(e->out, "%sle=\"%s\"", labels->n ? "," : "", le);
	fprintf(e->out, "%s ", labels->n || le ? "}" : "");
}

static void put_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64 "\n", ns / CLOCK_NS_PER_S, ns % CLOCK_NS_PER_S);
}

void exposition_count(struct exposition *e, const struct exposition_labels *labels, uint64_t value)
{
	if (e->proto) {
		exposition_proto_value(e->proto, labels, (double)value);
		return;
	}
	put_name(e, exposition_suffix(e->family.type), labels, NULL);
	fprintf(e->out, "%" PRIu64 "\n", value);
}

void exposition_seconds(struct exposition *e, const struct exposition_labels *labels, uint64_t ns)
{
	if (e->proto) {
		exposition_proto_value(e->proto, labels, (double)ns / 1e9);
		return;
	}
	put_name(e, exposition_suffix(e->family.type), labels, NULL);
	put_seconds(e->out, ns);
}

void exposition_ratio(struct exposition *e, const struct exposition_labels *labels, double value)
{
	if (e->proto) {
		exposition_proto_value(e->proto, labels, value);
		return;
	}
	put_name(e, exposition_suffix(e->family.type), labels, NULL);
	fprintf(e->out, "%.6f\n", value);
}

void exposition_info(struct exposition *e, const struct exposition_labels *labels)
{
	exposition_count(e, labels, 1);
}

void exposition_classic(const struct histogram_sum *sum, struct exposition_classic *ret)
{
	uint64_t n = 0;

	*ret = (struct exposition_classic){0};
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!sum->n[i])
			continue;
		ret->count += sum->n[i];
		ret->sum_ns += sum->n[i] * histogram_middle(i);
	}
	for (uint32_t k = 0, bucket = 0; k < EXPOSITION_CLASSIC; k++) {
		const uint32_t octave = EXPOSITION_FIRST_OCTAVE + EXPOSITION_OCTAVES * k;

		for (; bucket <= octave * HISTOGRAM_SCALE; bucket++)
			n += sum->n[bucket];
		ret->n[k] = n;
		ret->upper_s[k] = (double)(UINT64_C(1) << octave) / 1e9;
	}
}

void exposition_histogram(struct exposition *e, const struct exposition_labels *labels,
			  const struct histogram_sum *sum)
{
	struct exposition_classic c;
	char le[32];

	if (e->proto) {
		exposition_proto_histogram(e->proto, labels, sum);
		return;
	}
	exposition_classic(sum, &c);
	for (uint32_t k = 0; k < EXPOSITION_CLASSIC; k++) {
		snprintf(le, sizeof(le), "%.9f", c.upper_s[k]);
		put_name(e, "_bucket", labels, le);
		fprintf(e->out, "%" PRIu64 "\n", c.n[k]);
	}
	put_name(e, "_bucket", labels, "+Inf");
	fprintf(e->out, "%" PRIu64 "\n", c.count);
	put_name(e, "_sum", labels, NULL);
	put_seconds(e->out, c.sum_ns);
	put_name(e, "_count", labels, NULL);
	fprintf(e->out, "%" PRIu64 "\n", c.count);
}

int exposition_end(struct exposition *e)
{
	if (e->form == EXPOSITION_OPENMETRICS)
		fputs("# EOF\n", e->out);
	if (!e->proto)
		return 0;
	exposition_proto_flush(e->proto);
	return exposition_proto_error(e->proto);
}
