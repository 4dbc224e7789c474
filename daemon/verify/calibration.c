// SPDX-License-Identifier: BSD-2-Clause
/* The helper process that measures probe costs: see calibration.h. */
#include "verify/calibration.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/reaper.h"
#include "probe/probe.h"
#include "verify/cache.h"
#include "verify/measure.h"
#include "verify/separate.h"

#define LIMIT_NS UINT64_C(8000000000)

struct calibration {
	unsigned int shares; /* owners in addition to the first */
	pid_t helper;
	int from;
	bool done;
	uint64_t deadline_ns;
	struct cost cost;
};

/* Weight of a new measurement; number of initial measurements, and their time limit */
#define LEARN	     0.25
#define FIRST	     3u
#define FIRST_MAX_NS UINT64_C(1500000000)

static struct cost learn_cost(const struct verify_opts *o)
{
	struct cost c = cache_load_cost(o), measured;
	uint64_t begun = clock_monotonic_ns();

	if (c.known && c.latency_ps) {
		measured = measure_cost(o);
		return cost_learn(&c, &measured, LEARN);
	}
	c = measure_cost(o);
	for (unsigned int n = 2; n <= FIRST && clock_monotonic_ns() - begun < FIRST_MAX_NS; n++) {
		measured = measure_cost(o);
		c = cost_learn(&c, &measured, 1.0 / n);
	}
	return c;
}

static _Noreturn void helper_main(const struct verify_opts *o, pid_t parent, int out)
{
	struct cost c;
	ssize_t r;

	if (separate_begin(o, parent, out) < 0)
		_exit(1);
	c = learn_cost(o);
	cache_store_cost(o, &c);
	probe_end();
	r = write(out, &c, sizeof(c));
	_exit(r == sizeof(c) ? 0 : 1);
}

struct calibration *calibration_start(const struct verify_opts *opts)
{
	_cleanup_(calibration_freep) struct calibration *c = calloc(1, sizeof(*c));
	pid_t self = getpid();
	int ends[2];

	if (!c)
		return NULL;
	c->from = -1;
	c->deadline_ns = clock_monotonic_ns() + LIMIT_NS;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return NULL;
	c->from = ends[0];
	c->helper = fork();
	if (c->helper == 0)
		helper_main(opts, self, ends[1]);
	close(ends[1]);
	return c->helper > 0 ? TAKE_PTR(c) : NULL;
}

struct calibration *calibration_share(struct calibration *c)
{
	if (c)
		c->shares++;
	return c;
}

void calibration_free(struct calibration *c)
{
	if (!c || (c->shares && c->shares--))
		return;
	separate_end(&c->helper);
	if (c->from >= 0)
		close(c->from);
	free(c);
}

bool calibration_wait(struct calibration *c, int ms)
{
	struct pollfd p = {.fd = c->from, .events = POLLIN};
	struct cost cost;

	if (c->done)
		return true;
	if (poll(&p, 1, ms) <= 0 && clock_monotonic_ns() < c->deadline_ns)
		return false;
	/* There is only one message, and it is smaller than PIPE_BUF. */
	if (p.revents && read(c->from, &cost, sizeof(cost)) == sizeof(cost))
		c->cost = cost;
	c->done = true;
	if (p.revents && c->helper > 0) {
		reaper_await(c->helper, SEPARATE_END_MS); /* it is about to exit */
		c->helper = 0;
	}
	separate_end(&c->helper);
	return true;
}

struct cost calibration_result(const struct calibration *c)
{
	return c->cost;
}

struct cost calibration_before(const struct verify_opts *opts, bool *ret_other)
{
	struct cost own = cache_load_cost(opts), other;

	*ret_other = false;
	if (own.known)
		return own;
	other = cache_load_other_cost(opts);
	*ret_other = other.known;
	return other;
}
