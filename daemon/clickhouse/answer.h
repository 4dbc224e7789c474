/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers to the questions of question.h, which are untrusted, as a snapshot: one target and one
 * thread that stand for all, with the sums. Reports treat it as any other snapshot. Pure.
 *
 * Call answer_summary() and answer_labels() first, then answer_functions(), _figures(), _stacks(),
 * _samples(), _details() in this order, then answer_finish(). data: `n` bytes, borrowed. Errors: -EBADMSG (damaged), -E2BIG (too
 * many contexts) or -ENOMEM, with *diag set.
 */
#ifndef PYPROF_CLICKHOUSE_ANSWER_H
#define PYPROF_CLICKHOUSE_ANSWER_H

#include "base/diag.h"
#include "snapshot/snapshot.h"

#define ANSWER_TEXT_MAX 256

/* The least and the greatest value */
struct answer_range {
	char min[ANSWER_TEXT_MAX], max[ANSWER_TEXT_MAX];
};

/* In the order of the question */
struct answer_summary {
	uint64_t intervals, hosts, processes;
	uint64_t start_ns, end_ns;
	/* Labels */
	struct answer_range service, host, version, python, mode, options, clock, kernel, program,
		command;
};

int answer_summary(const void *data, size_t n, struct answer_summary *ret, struct diag *diag);
/* Adds the labels. */
int answer_labels(const void *data, size_t n, struct answer_summary *ret, struct diag *diag);

/*
 * Returns 0, or -EINVAL with *diag set: profiles of different modes or with different options,
 * whose figures cannot be added, or none at all.
 */
int answer_check(const struct answer_summary *s, struct diag *diag);

struct answer;

/* *ret belongs to the caller; summary: borrowed until answer_finish(). */
int answer_new(const struct answer_summary *summary, struct answer **ret, struct diag *diag);
void answer_free(struct answer *a);
DEFINE_FREEP(struct answer, answer_free)

int answer_figures(struct answer *a, const void *data, size_t n, struct diag *diag);
int answer_functions(struct answer *a, const void *data, size_t n, struct diag *diag);
int answer_stacks(struct answer *a, const void *data, size_t n, struct diag *diag);
int answer_samples(struct answer *a, const void *data, size_t n, struct diag *diag);
int answer_details(struct answer *a, const void *data, size_t n, struct diag *diag);

/*
 * *ret belongs to the caller. *ret_unknown: number of stacks without names, whose figures are in
 * "(unknown)".
 */
int answer_finish(struct answer *a, struct snapshot **ret, uint64_t *ret_unknown,
		  struct diag *diag);

/* One of a label's values, see question_write_values() */
struct answer_value {
	char value[ANSWER_TEXT_MAX];
	uint64_t hosts, processes, intervals, cpu_ns, wall_ns;
};

/* *ret: an array that belongs to the caller. */
int answer_values(const void *data, size_t n, struct answer_value **ret, size_t *ret_n,
		  struct diag *diag);

#endif
