/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facts about a target that are stored by name and added up over intervals: numbers, and flags,
 * whose sum is the number of targets that have them. Adding one needs no change of the tables. Pure.
 */
#ifndef PYPROF_CLICKHOUSE_FACTS_H
#define PYPROF_CLICKHOUSE_FACTS_H

#include "snapshot/snapshot.h"

#define FACT_NAME_MAX 64

unsigned int facts_count(void);
/* Returns the name of the i-th number, written to buf if it is made of parts. */
const char *fact_name(unsigned int i, char buf[FACT_NAME_MAX]);
uint64_t *fact_at(struct snapshot_target *t, unsigned int i);

struct fact_flag {
	const char *name;
	size_t offset; /* of the bool in struct snapshot_target */
	bool of_all;   /* a sum of targets has it only if all have it */
};

/* Ends with name NULL. */
extern const struct fact_flag fact_flags[];
bool *fact_flag_at(struct snapshot_target *t, const struct fact_flag *flag);

/* Names of other figures: of a target, */
#define FACT_TARGETS	"targets"
#define FACT_THREADS	"threads"
#define FACT_TOTAL_CPU	"total_cpu" /* of all threads, ns */
#define FACT_TOTAL_WALL "total_wall"
#define FACT_MEASURED	"measured " /* and the column's name: not 0 if it was measured */
/* their greatest value, not their sum, counts: */
#define FACT_RATE	  "sample_rate"
#define FACT_PERIOD	  "sample_period_ns"
#define FACT_MAX_OVERHEAD "max_overhead"
#define FACT_CALL_NS	  "syscall_ns " /* and the name of a system call: waiting for it */
#define FACT_CALLS	  "syscall_count "
/* of a function: variances (value: the number of unknown ones), */
extern const char *const fact_variances[SNAPSHOT_FIGURES];
/* histograms of durations (and a bucket's upper bound), their maxima, lines (and its number). */
extern const char *const fact_durations[SNAPSHOT_CLOCKS];
extern const char *const fact_longest[SNAPSHOT_CLOCKS];
#define FACT_LINE_NS	  "line_ns "
#define FACT_LINE_SAMPLES "line_samples "

/* Labels that every interval gets, if it has no other ones of these names */
#define FACT_LABEL_CLOCK   "clock"
#define FACT_LABEL_KERNEL  "kernel"
#define FACT_LABEL_PROGRAM "program"
#define FACT_LABEL_COMMAND "command"

/*
 * Figures of calling contexts, besides calls and times, by name: the columns of base/column.h, and
 * these. Returns the i-th name, written to buf if it is made of parts; NULL: there are fewer.
 */
#define DETAIL_NAME_MAX 64
const char *detail_name(unsigned int i, char buf[DETAIL_NAME_MAX]);
enum detail {
	DETAIL_YIELDS,
	DETAIL_INFLIGHT,
	DETAIL_MIN,
	DETAIL_MAX = DETAIL_MIN + 2 /* per clock */,
	DETAIL_COLUMNS = DETAIL_MAX + 2 /* per column */
};

#endif
