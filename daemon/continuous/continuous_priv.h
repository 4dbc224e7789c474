/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to continuous/: continuous.c drives it, discover.c finds processes, members.c cuts. */
#ifndef PYPROF_CONTINUOUS_CONTINUOUS_PRIV_H
#define PYPROF_CONTINUOUS_CONTINUOUS_PRIV_H

#include "continuous/budget.h"
#include "continuous/candidates.h"
#include "continuous/continuous.h"
#include "continuous/filter.h"
#include "continuous/service.h"
#include "continuous/writer.h"
#include "probe/arrivals.h"

/* Processes that are being attached at a time: they take CPU time from others. */
#define DISCOVER_AT_ONCE 4u

/* A process that is sampled, or is being attached to. */
struct member {
	pid_t pid;
	char service[SERVICE_MAX];
	uint64_t asked_ns;     /* attaching began, CLOCK_MONOTONIC; 0: it is attached */
	struct snapshot *last; /* see sessions_cut() */
	bool ended;
};

struct continuous_counts {
	uint64_t attached, refused; /* processes, ever */
	uint64_t not_python, left_out, over_limit;
	uint64_t intervals, empty; /* kept; nothing was recorded */
	uint64_t lost;		   /* intervals, before the writer has them */
	uint64_t late;		   /* cuts left out, because the one before was not done */
	uint64_t scans, samples;
	char refusal[256]; /* the last one */
};

struct continuous {
	struct sd_event *event;
	struct sessions *sessions;
	struct continuous_opts opts;
	char host[65];
	struct filter *filter;
	struct arrivals *arrivals;
	struct candidates candidates;
	struct foreign foreign;
	struct member **v;
	size_t n, attaching;
	struct sessions_listener listener;
	struct sd_event_source *reports, *look, *looked, *cut, *ends, *scan;
	size_t next_cut;      /* the member to cut next; n: none */
	uint64_t cut_unix_ns; /* the time of the present cut, aligned */
	struct writer *writer;
	struct keep *keep;
	struct interval_sink *sinks;
	struct budget budget;
	uint64_t cut_ns;     /* CPU time used for cuts */
	uint64_t looking_ns; /* the same for looking at new processes and attaching to them */
	uint64_t lost;	     /* reports, at the last scan */
	struct continuous_counts counts;
};

/* discover.c: find processes, and attach to them. */
int discover_begin(struct continuous *c, struct diag *diag);
void discover_end(struct continuous *c);
void discover_soon(struct continuous *c);

/* members.c */
struct member *member_find(const struct continuous *c, pid_t pid);
/* NULL: out of memory. */
struct member *member_add(struct continuous *c, pid_t pid);
void member_remove(struct continuous *c, struct member *m);
/* Cut its profile since the last cut. */
void member_cut(struct continuous *c, struct member *m);
/* Cut, detach, remove. */
void member_leave(struct continuous *c, struct member *m);

/* CPU time that this mode has used so far, ns. */
uint64_t continuous_cpu_ns(struct continuous *c);
/* The part of it for samples, cuts and intervals. */
uint64_t continuous_sampling_ns(struct continuous *c);

#endif
