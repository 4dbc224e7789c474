// SPDX-License-Identifier: BSD-2-Clause
/* How long tests wait: see patience.h. */
#include "harness/patience.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <time.h>

#include "harness/test.h"

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A positive number in the environment; 0: there is none. */
static double number(const char *name)
{
	const char *text = getenv(name);
	double value = text ? strtod(text, NULL) : 0;

	return value > 0 ? value : 0;
}

/*
 * How many times slower than a usual machine this one is, at least 1: see patience.py. For limits only, never
 * for what is asserted.
 */
static double machine_factor(void)
{
	double factor = number("PYPROF_PATIENCE");

	return factor > 1 ? factor : 1;
}

static double end_s(void)
{
	static double end;

	if (end == 0)
		end = number("PYPROF_TEST_UNTIL");
	if (end == 0)
		end = now_s() + PATIENCE_ALONE_S * machine_factor();
	return end;
}

bool patience_over(void)
{
	return now_s() >= end_s();
}

struct timeval patience_left(void)
{
	double left = end_s() - now_s();

	if (left < 0.001)
		left = 0.001;
	return (struct timeval){
		.tv_sec = (time_t)left,
		.tv_usec = (suseconds_t)((left - (double)(time_t)left) * 1e6),
	};
}

int patience_left_ms(void)
{
	const struct timeval left = patience_left();

	return (int)(left.tv_sec < INT_MAX / 2000 ? left.tv_sec : INT_MAX / 2000) * 1000 +
	       (int)(left.tv_usec / 1000);
}

void patience_step(void)
{
	poll(NULL, 0, PATIENCE_STEP_MS);
}

void patience_until(bool (*cond)(void *ctx), void *ctx, const char *what)
{
	while (!cond(ctx)) {
		cr_assert(!patience_over(), "waited for %s", what);
		patience_step();
	}
}

void patience_pass(unsigned int ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		continue;
}

double patience_cpu_s(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		return -1;
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}
