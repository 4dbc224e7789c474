/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests for profiles: the options shared by all commands that show one, the request made from
 * them, and the output.
 */
#ifndef PYPROFCTL_QUERY_H
#define PYPROFCTL_QUERY_H

#include "client.h"
#include "cmd.h"
#include "snapshot/snapshot.h"

struct query {
	const char *format, *output, *sort, *min_share;
	pid_t pid, tid;
	int clock;	       /* index into query_clocks; 0: the daemon's default */
	uint64_t limit, depth; /* 0: not given */
	bool raw_times, reverse, strip_dirs, only_my_code, verbose, by_thread, busy;
	bool since_last;
	const char *since;
	const char *builtins_of, *columns;
};

/* "", cpu, wall, NULL. "" stands for "not given". */
extern const char *const query_clocks[];

#define QUERY_FIELD(f) .offset = offsetof(struct query, f)

/* Rows of an option table for struct query */
#define QUERY_OPT_FORMAT                                                                           \
	{                                                                                          \
		"format", 'f', OPT_STRING, QUERY_FIELD(format), "FORMAT",                          \
			"text, pstats, json, ...; default: from the\nextension of FILE, "          \
			"otherwise text"                                                           \
	}
/* For snapshot, which the daemon answers */
#define QUERY_OPTS_SINCE                                                                           \
	{"since-last",                                                                             \
	 0,                                                                                        \
	 OPT_FLAG,                                                                                 \
	 QUERY_FIELD(since_last),                                                                  \
	 NULL,                                                                                     \
	 "only what happened since the last snapshot with\n--since-last in this terminal"},        \
	{                                                                                          \
		"since", 0, OPT_STRING, QUERY_FIELD(since), "NAME",                                \
			"the same, since the last one with this NAME"                              \
	}
#define QUERY_OPT_VERBOSE                                                                          \
	{                                                                                          \
		"verbose", 'v', OPT_FLAG, QUERY_FIELD(verbose), NULL,                              \
			"text: all facts about the profile below it, instead\nof four lines"       \
	}
#define QUERY_OPT_OUTPUT                                                                           \
	{                                                                                          \
		"output", 'o', OPT_STRING, QUERY_FIELD(output), "FILE",                            \
			"output file (default: stdout)"                                            \
	}
/* Of targets of one machine */
#define QUERY_OPTS_TARGET                                                                          \
	{"pid", 'p', OPT_PID, QUERY_FIELD(pid), "PID", "only this process"},                       \
	{                                                                                          \
		"tid", 't', OPT_PID, QUERY_FIELD(tid), "TID", "only this thread"                   \
	}
#define QUERY_OPT_CLOCK                                                                            \
	{                                                                                          \
		"clock", 0, OPT_CHOICE, QUERY_FIELD(clock), "cpu|wall", "clock to report",         \
			.choices = query_clocks                                                    \
	}
#define QUERY_OPT_RAW                                                                              \
	{                                                                                          \
		"raw-times", 0, OPT_FLAG, QUERY_FIELD(raw_times), NULL,                            \
			"do not subtract the probes' own time"                                     \
	}
/* How rows are shown */
#define QUERY_OPTS_SHOWN                                                                             \
	{"sort", 's', OPT_STRING, QUERY_FIELD(sort), "KEY[,KEY]", "sort keys, as in pstats"},        \
		{"reverse", 'r', OPT_FLAG, QUERY_FIELD(reverse), NULL, "reverse the sort order"},    \
		{"limit",  'l',                                                                      \
		 OPT_U64,  QUERY_FIELD(limit),                                                       \
		 "N",	   "at most N rows (default: 30 on a terminal, all in\nfiles and pipes)",    \
		 .min = 1, .max = INT32_MAX},                                                        \
		{"strip-dirs", 0,                                                                    \
		 OPT_FLAG,     QUERY_FIELD(strip_dirs),                                              \
		 NULL,	       "file names without directories"},                                    \
		{"only-my-code",                                                                     \
		 0,                                                                                  \
		 OPT_FLAG,                                                                           \
		 QUERY_FIELD(only_my_code),                                                          \
		 NULL,                                                                               \
		 "standard library and installed packages folded\ninto their callers"},              \
		{"busy",   0,                                                                        \
		 OPT_FLAG, QUERY_FIELD(busy),                                                        \
		 NULL,	   "leave out waits for work: event loops, accept, idle\nworkers, masters"}, \
		{"columns",                                                                          \
		 0,                                                                                  \
		 OPT_STRING,                                                                         \
		 QUERY_FIELD(columns),                                                               \
		 "LIST",                                                                             \
		 "text: also percent, p50, p90, p99, max of calls, or\ncolumns as in csv, such "     \
		 "as counters_vcsw"},                                                                \
		QUERY_OPT_VERBOSE,                                                                   \
	{                                                                                            \
		"builtins-of", 0, OPT_STRING, QUERY_FIELD(builtins_of), "PATTERN",                   \
			"rows only for C functions that match, the others\nfolded into their "       \
			"callers"                                                                    \
	}
#define QUERY_OPTS_ALL                                                                             \
	QUERY_OPT_OUTPUT, QUERY_OPTS_TARGET, QUERY_OPT_CLOCK, QUERY_OPT_RAW, QUERY_OPTS_SHOWN
#define QUERY_OPTS_TREE                                                                            \
	{"depth",  0,                                                                              \
	 OPT_U64,  QUERY_FIELD(depth),                                                             \
	 "N",	   "tree: at most N calls deep",                                                   \
	 .min = 1, .max = INT32_MAX},                                                              \
		{"by-thread", 0,                                                                   \
		 OPT_FLAG,    QUERY_FIELD(by_thread),                                              \
		 NULL,	      "tree: one per thread, not merged; waits: by thread"},               \
	{                                                                                          \
		"min-share", 0, OPT_STRING, QUERY_FIELD(min_share), "PERCENT",                     \
			"tree: omit nodes with a smaller share of time\n(default: 1)"              \
	}

/* The requested format's name, else the one of the file's extension, else "text". Call
 * format_choose() first: it refuses unknown extensions. */
const char *query_format(const struct query *q);

/*
 * The request path for a format with n patterns, for output to a file or to the stream out; NULL: a
 * file. Owned. NULL: out of memory.
 */
char *query_path(struct client *c, const struct query *q, const char *format, char *const *patterns,
		 int n, FILE *out);

/* The number of rows: as requested, or format_terminal_rows() if out is a terminal (NULL: a file). 0:
 * no limit. */
uint64_t query_limit(const struct query *q, const char *format, FILE *out);

/* Use colours if out is a terminal that supports them and NO_COLOR is not set. */
bool query_colour(FILE *out);

/* Send the request and write the response to q's file or the command's output. */
int query_run(const struct cmd_call *call, const struct query *q, const char *format,
	      struct diag *diag);

/* Fetch the daemon's profile of these processes and threads, all data. The caller owns *ret. */
int query_fetch(const struct cmd_call *call, pid_t pid, pid_t tid, struct snapshot **ret,
		struct diag *diag);

/* Write a response to a file, completely or not at all. */
int query_save(struct client *c, const char *path, const char *output, struct diag *diag);

#endif
