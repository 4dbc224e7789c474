/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The doctor: what pyprofd would do to a process or an interpreter, without doing it. Prints the
 * interpreter found, the machine's abilities, and the probe plan: each site, its instruction, its
 * cost class, and what is missing.
 */
#ifndef PYPROF_DOCTOR_DOCTOR_H
#define PYPROF_DOCTOR_DOCTOR_H

#include <stdio.h>

#include "base/diag.h"

/* arg: a pid, or the path of an interpreter (an executable or a libpython). Returns 0 if it can be
 * traced here, else a negative errno with diag; what was found is printed in both cases. */
int doctor_run(const char *arg, FILE *out, struct diag *diag);

#endif
