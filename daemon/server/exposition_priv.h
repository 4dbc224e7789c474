/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to exposition: exposition.c writes text, exposition_proto.c protobuf messages. */
#ifndef PYPROF_SERVER_EXPOSITION_PRIV_H
#define PYPROF_SERVER_EXPOSITION_PRIV_H

#include "server/exposition.h"

#define EXPOSITION_FIRST_OCTAVE 10u /* classic buckets: 2^10 ns, about 1 us */
#define EXPOSITION_LAST_OCTAVE	36u /* 2^36 ns, about 69 s */
#define EXPOSITION_OCTAVES	2u  /* step */
#define EXPOSITION_CLASSIC                                                                         \
	((EXPOSITION_LAST_OCTAVE - EXPOSITION_FIRST_OCTAVE) / EXPOSITION_OCTAVES + 1)

/* A histogram as classic buckets; cumulative, without that of all values. */
struct exposition_classic {
	uint64_t n[EXPOSITION_CLASSIC];
	double upper_s[EXPOSITION_CLASSIC];
	uint64_t count, sum_ns; /* sum: of the buckets' middles */
};

void exposition_classic(const struct histogram_sum *sum, struct exposition_classic *ret);

/* The name of a sample: with the suffix of its type. */
const char *exposition_suffix(enum exposition_type type);

/* The family's messages are collected, because its length precedes it. */
struct exposition_proto;
struct exposition_proto *exposition_proto_new(FILE *out);
void exposition_proto_free(struct exposition_proto *p);
void exposition_proto_begin(struct exposition_proto *p, const struct exposition_family *family);
void exposition_proto_value(struct exposition_proto *p, const struct exposition_labels *labels,
			    double value);
void exposition_proto_histogram(struct exposition_proto *p, const struct exposition_labels *labels,
				const struct histogram_sum *sum);
/* Write the collected family. */
void exposition_proto_flush(struct exposition_proto *p);
int exposition_proto_error(const struct exposition_proto *p);

#endif
