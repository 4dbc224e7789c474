/* SPDX-License-Identifier: BSD-2-Clause */
/* A target that is traced in windows (private to session/): windowed.c, and its marks: windowed_marks.c. */
#ifndef PYPROF_SESSION_WINDOWED_H
#define PYPROF_SESSION_WINDOWED_H

#include <stdbool.h>
#include <stdint.h>

struct tracee;

/* Marks are to be chosen. The probe is attached. */
void windowed_marks_begin(struct tracee *t);
/*
 * Does the next step if marks are being chosen, and returns true: no window may open now. To be called
 * while none is open, when the gap so far is in the profile.
 */
bool windowed_marks_turn(struct tracee *t);
/* Returns in how many us windowed_turn() is to be called for them, at most `due`. */
uint64_t windowed_marks_due_us(const struct tracee *t, uint64_t due);
/* Returns whether marks are to be given up; an open window is to be closed then. */
bool windowed_marks_unfit(struct tracee *t);
/* Passes the number of marks to the profile, before a snapshot or the end. */
void windowed_marks_report(struct tracee *t);
/* The profile was cleared. */
void windowed_marks_clear(struct tracee *t);
/* The time that marks have taken from the target, ns. */
uint64_t windowed_marks_ns(const struct tracee *t);

#endif
