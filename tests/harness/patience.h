/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long tests wait. No result may depend on the machine's speed, so each duration in a test is one of:
 *
 *  - an event that must happen: wait for it without a limit but the suite's: patience_over(), patience_left_ms();
 *  - work that a process must have done: in its own CPU time (patience_cpu_s()) or in counts, never in wall time;
 *  - a bound of the product, such as "stop within 1 s": in CPU time that the daemon itself used, or as an order
 *    of events (it answers while something else is still blocked); `make bench` and `make soak` measure it in
 *    wall time;
 *  - a statistical bound: from a fixed seed, or with its rate of false alarms computed beside it;
 *  - time that the product itself measures (an interval, an idle timeout) and that only has to pass:
 *    patience_pass().
 *
 * check/durations.sh lists literal durations elsewhere in the tests, and fails.
 *
 * run.sh measures the machine once and exports the factor as PYPROF_PATIENCE, and the end of the current program's
 * time as PYPROF_TEST_UNTIL.
 */
#ifndef PYPROF_TESTS_HARNESS_PATIENCE_H
#define PYPROF_TESTS_HARNESS_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

/* A test program that run.sh did not start waits for this long, in seconds, times the factor. */
#define PATIENCE_ALONE_S 300

/* The time between two looks at a condition that has no file descriptor, ms */
#define PATIENCE_STEP_MS 2

/*
 * CPU time that a target works while a test observes it, in ms. `make check` uses one CPU for it, so the shortest
 * that serves: a moment for some hundred events, a while for some hundred samples at 999 Hz.
 */
#define PATIENCE_MOMENT_MS 100
#define PATIENCE_WHILE_MS  500

/* Returns whether the time of this program is over: a test that waits must then fail and say for what. */
bool patience_over(void);
/* Time until then, at least 1, for poll(), and for SO_RCVTIMEO and SO_SNDTIMEO. */
int patience_left_ms(void);
struct timeval patience_left(void);

/* Wait for one step. Not for use in a program whose event loop must turn: see traced_until(). */
void patience_step(void);

/*
 * Wait until cond holds; fails the test, naming what it waited for, when the program's time is over. Does not
 * run any event loop.
 */
void patience_until(bool (*cond)(void *ctx), void *ctx, const char *what);

/*
 * Let this much wall time pass, which the product itself measures. What the test asserts afterwards must hold
 * however much more has passed.
 */
void patience_pass(unsigned int ms);

/* CPU time of all threads of a process, including those that have ended, seconds; -1: it has gone. */
double patience_cpu_s(pid_t pid);

#endif
