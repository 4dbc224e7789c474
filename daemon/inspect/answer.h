/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of an inspector (private to inspect/ and its tests). The daemon checks all of them like
 * records of the ring, because the files that the inspector parses may have taken it over. Decoding
 * is total and pure, and returns nothing on failure.
 */
#ifndef PYPROF_INSPECT_ANSWER_H
#define PYPROF_INSPECT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/code_lines.h"
#include "base/code_names.h"
#include "base/diag.h"
#include "python/census.h"
#include "python/details.h"
#include "python/python.h"

struct inspect_result;

enum question {
	QUESTION_FIND,
	QUESTION_STACKS,
	QUESTION_CODE,
	QUESTION_HIDDEN,
	QUESTION_EXEC_ID,
	QUESTION_DUMP, /* stacks with lines */
	QUESTION_GILS,
	QUESTION_CENSUS,
	QUESTION_LINES,
	QUESTION_NAMES,
	QUESTION_LOCALS, /* of the frame at the address arg */
	QUESTION_TASKS,
	QUESTION_GREENLETS, /* answered like QUESTION_TASKS */
	QUESTIONS
};

struct question_msg {
	uint32_t seq;
	uint32_t question; /* enum question */
	uint64_t arg;
};

/* The header of each answer */
struct answer_head {
	uint32_t seq;
	uint32_t question;
	int32_t err;   /* 0 or a negative errno, without content except for QUESTION_FIND */
	uint32_t size; /* bytes that follow */
};

/* The maximum size of an answer, bytes */
size_t answer_max(enum question q);

/* The size of an answer to QUESTION_FIND */
extern const size_t answer_find_max;
/*
 * Encodes a result, or the diagnosis of a failure (err). via: how python->file was opened. Returns
 * a malloc'd answer; NULL if out of memory.
 */
struct answer_via {
	bool exe;
	uint64_t start, end; /* if not exe: addresses of the mapping */
};
char *answer_encode_find(const struct inspect_result *r, const struct answer_via *via, int err,
			 const struct diag *diag, size_t *ret_size);
/*
 * Decodes the answer to QUESTION_FIND. tid: thread whose /proc directory `via` refers to; 0 if a
 * file at path was inspected. Returns 0, the error in the answer, or -EPROTO for an invalid answer.
 */
int answer_decode_find(const void *data, size_t size, pid_t tid, const char *path,
		       struct inspect_result *ret, struct diag *diag);

/*
 * Encodes stacks, with line numbers if all stacks have them. Stacks beyond answer_max() are left
 * out. The other functions likewise: encode returns a malloc'd answer of *ret_size bytes or NULL if
 * out of memory; decode returns 0 (gils: the number of ranges), -EPROTO for an invalid answer, or
 * -ENOMEM.
 */
char *answer_encode_stacks(const struct python_stack *v, size_t n, size_t *ret_size);
int answer_decode_stacks(const void *data, size_t size, struct python_stack **ret, size_t *n);

char *answer_encode_code(const struct code_names *c, size_t *ret_size);
int answer_decode_code(const void *data, size_t size, struct code_names *ret);

char *answer_encode_lines(const struct code_lines *c, size_t *ret_size);
int answer_decode_lines(const void *data, size_t size, struct code_lines *ret);

char *answer_encode_hidden(bool misses, const char *text, size_t *ret_size);
int answer_decode_gils(const void *data, size_t size, struct pyp_gil_range out[PYP_GIL_RANGES]);
int answer_decode_hidden(const void *data, size_t size, bool *misses, char *out, size_t out_size);

extern const size_t answer_census_max;
char *answer_encode_census(const struct census *c, size_t *ret_size);
int answer_decode_census(const void *data, size_t size, struct census *ret);

char *answer_encode_names(const struct python_names *n, size_t *ret_size);
int answer_decode_names(const void *data, size_t size, struct python_names *ret);
char *answer_encode_locals(const struct python_locals *l, size_t *ret_size);
int answer_decode_locals(const void *data, size_t size, struct python_locals *ret);
char *answer_encode_tasks(const struct python_tasks *t, size_t *ret_size);
int answer_decode_tasks(const void *data, size_t size, struct python_tasks *ret);

/* Returns whether s is UTF-8 of n bytes without NUL, as python_str_read() returns it. */
bool answer_is_text(const char *s, size_t n);

#endif
