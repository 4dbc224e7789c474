/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A diagnosis: why an operation failed, as a message for the user, with a hint and the exit code of
 * the command line. The control API transfers it to the client.
 *
 * Idiom: `return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "hint…", "no process %d", pid);` Every
 * function accepts diag == NULL. The first diagnosis is kept, so that callers that only pass an
 * error on do not hide its cause.
 */
#ifndef PYPROF_BASE_DIAG_H
#define PYPROF_BASE_DIAG_H

#include "pyprof/exit_codes.h"

struct diag {
	int err;	    /* negative errno; 0: no error */
	enum pyp_exit exit; /* exit code for this failure */
	char msg[512];	    /* what and why, one line */
	char hint[320];	    /* what to do about it; may be empty */
};

/* Set the diagnosis (unless one is set already) and return err, which must be negative. */
int diag_set(struct diag *diag, int err, enum pyp_exit exit, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/*
 * Same from an errno value (positive): ": strerror" is added to the message, the exit code and a
 * hint follow from it (ESRCH → 3, EPERM/EACCES → 4, else 1). Returns -err.
 */
int diag_errno(struct diag *diag, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Reset to "no error". */
void diag_clear(struct diag *diag);

/* "msg; hint" on one line, without characters that can harm a terminal. Returns out. */
const char *diag_format(const struct diag *diag, char *out, unsigned long size);

/* The exit code's name in the control API: "usage", "no_process", … */
const char *diag_exit_name(enum pyp_exit exit);

#endif
