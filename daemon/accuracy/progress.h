/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scaling counts by the program's progress (private to accuracy/). Pure.
 *
 * Marks are instructions of the evaluator that are executed rarely, and so are counted all the time
 * (session/marks.h). If M marks were passed since then, and m of them in windows, weighted like their calls, then the
 * program did M / m times as much as these windows represent, whatever the probes cost, and whether it waits or
 * computes. The time before is added by its CPU time.
 */
#ifndef PYPROF_ACCURACY_PROGRESS_H
#define PYPROF_ACCURACY_PROGRESS_H

#include <stdbool.h>

struct evidence;
struct evidence_func;

/*
 * Returns the factor by which windows' calls are multiplied; 0: too few marks. *ret_error: its relative
 * standard error; *ret_common: the part of it that progress_variance() does not contain.
 */
double progress_factor(const struct evidence *e, double *ret_error, double *ret_common);

/* The number of windows that show as much as those in which marks were counted; 0: none */
double progress_windows(const struct evidence *e);

/* The variance between windows of a function's calls, unscaled, if they are scaled by marks. */
double progress_variance(const struct evidence *e, const struct evidence_func *f);

#endif
