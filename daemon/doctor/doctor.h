/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The doctor: checks whether and how pyprofd can trace a process or an interpreter. Prints the
 * interpreter found, the machine's capabilities, and the probe plan: each site, its instruction,
 * its cost class, and what is missing. Runs the self-test. For a process it also forecasts the
 * overhead of the modes; for that, probes and samples are enabled in the process for a moment.
 */
#ifndef PYPROF_DOCTOR_DOCTOR_H
#define PYPROF_DOCTOR_DOCTOR_H

#include <stdio.h>

#include "base/diag.h"

/*
 * arg: a pid, or the path of an interpreter (an executable or a libpython). Returns 0 if it can be
 * traced on this machine, else a negative errno with diag set. The findings are printed in both
 * cases.
 */
int doctor_run(const char *arg, FILE *out, struct diag *diag);

#endif
