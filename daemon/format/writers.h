/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The writers in format.c's table, one file each. To add a format: add its file, a declaration here
 * and a row in the table.
 */
#ifndef PYPROF_FORMAT_WRITERS_H
#define PYPROF_FORMAT_WRITERS_H

#include "format/format_opts.h"

int text_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag);
int pstats_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		 FILE *out, struct diag *diag);
int json_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag);
int callgrind_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		    FILE *out, struct diag *diag);
int collapsed_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		    FILE *out, struct diag *diag);
int speedscope_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		     FILE *out, struct diag *diag);
int pprof_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		FILE *out, struct diag *diag);
int chrome_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		 FILE *out, struct diag *diag);
int csv_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	      FILE *out, struct diag *diag);
int html_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag);
int page_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag);
int callers_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		  FILE *out, struct diag *diag);
int callees_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		  FILE *out, struct diag *diag);
int threads_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		  FILE *out, struct diag *diag);
int coroutines_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		     FILE *out, struct diag *diag);
int coroutines_csv_write(const struct snapshot *s, const struct view *v,
			 const struct format_opts *o, FILE *out, struct diag *diag);
int tree_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag);
int lines_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		FILE *out, struct diag *diag);
int memory_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		 FILE *out, struct diag *diag);
int counters_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		   FILE *out, struct diag *diag);
int waits_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		FILE *out, struct diag *diag);
int gil_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	      FILE *out, struct diag *diag);
int openmetrics_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		      FILE *out, struct diag *diag);
int rows_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	       FILE *out, struct diag *diag);

#endif
