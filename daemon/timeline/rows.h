/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface of the timeline formats. Private to timeline/. */
#ifndef PYPROF_TIMELINE_ROWS_H
#define PYPROF_TIMELINE_ROWS_H

#include <jansson.h>
#include <stdio.h>

#include "stack/watch.h"

struct timeline_names {
	const char *file, *name; /* name: qualified name if known */
	int32_t line;
};

/* A row. Texts are results of `describe`; NULL: none. */
struct timeline_row {
	enum watch_kind kind;
	uint32_t pid, tid;
	uint64_t ts, cpu; /* ns since the start of the recording; the thread's CPU time, ns */
	uint64_t count;	  /* DROPPED */
	const char *func, *caller;
};

/* The moment at which the trigger's condition was met */
struct timeline_mark {
	uint32_t pid, tid;
	uint64_t ts, cpu;	      /* as a row's */
	const char *what, *condition; /* valid UTF-8 */
};

struct timeline_end {
	uint64_t ts;
	json_t *provenance; /* borrowed */
};

/*
 * Row functions write at `at`, which has room for TIMELINE_ROW_MAX bytes plus the texts, and return
 * the end of the written data.
 */
#define TIMELINE_ROW_MAX 320

struct timeline_format {
	const char *name, *extension;
	/* Text of a function in its own rows, and in its callees' rows */
	int (*describe)(FILE *out, const struct timeline_names *n);
	int (*describe_caller)(FILE *out, const struct timeline_names *n);
	void (*head)(FILE *out);
	char *(*row)(char *at, const struct timeline_row *r, bool first);
	/* Write a process's (tid 0) or thread's name. May be NULL. */
	int (*name_of)(FILE *out, uint32_t pid, uint32_t tid, const char *text, bool first);
	int (*mark)(FILE *out, const struct timeline_mark *m, bool first);
	int (*tail)(FILE *out, const struct timeline_end *end, bool first);
};

extern const struct timeline_format timeline_chrome, timeline_csv;

/* Append text or a number at `at`; return the new end. */
char *timeline_put(char *at, const char *text);
char *timeline_put_number(char *at, uint64_t n);

#endif
