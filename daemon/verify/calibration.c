// SPDX-License-Identifier: BSD-2-Clause
/* The helper process that measures probe costs: see calibration.h. */
#include "verify/calibration.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "probe/probe.h"
#include "verify/cache.h"
#include "verify/measure.h"
#include "verify/separate.h"

#define LIMIT_NS UINT64_C(8000000000)

struct calibration {
	unsigned int shares; /* owners in addition to the first */
	struct separate process;
	bool done;
	struct cost cost, answer;
};

/* Number of initial measurements, and their time limit. A later one weighs as if it were one more. */
#define FIRST	     3u
#define FIRST_MAX_NS UINT64_C(1500000000)

static struct cost learn_cost(const struct verify_opts *o)
{
	struct cost c = cache_load_cost(o), measured;
	uint64_t begun = clock_monotonic_ns();

	if (c.known && c.latency_ps) {
		measured = measure_cost(o);
		return cost_learn(&c, &measured, 1.0 / (FIRST + 1));
	}
	c = measure_cost(o);
	for (unsigned int n = 2; n <= FIRST && clock_monotonic_ns() - begun < FIRST_MAX_NS; n++) {
		measured = measure_cost(o);
		c = cost_learn(&c, &measured, 1.0 / n);
	}
	return c;
}

static void helper_main(const struct verify_opts *o, int out)
{
	struct cost c = learn_cost(o);

	cache_store_cost(o, &c);
	probe_end();
	/* one message, smaller than PIPE_BUF */
	if (write(out, &c, sizeof(c)) != sizeof(c))
		_exit(1);
}

struct calibration *calibration_start(const struct verify_opts *opts)
{
	_cleanup_(calibration_freep) struct calibration *c = calloc(1, sizeof(*c));

	if (!c || separate_start(&c->process, opts, helper_main, LIMIT_NS) < 0)
		return NULL;
	return TAKE_PTR(c);
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
	separate_end(&c->process, false);
	free(c);
}

bool calibration_wait(struct calibration *c, int ms)
{
	struct pollfd p = {.fd = c->process.from, .events = POLLIN};
	int r;

	if (c->done)
		return true;
	(void)poll(&p, 1, ms);
	r = separate_receive(&c->process, &c->answer, sizeof(c->answer));
	if (r == -EINPROGRESS)
		return false;
	c->cost = r == 0 ? c->answer : c->cost;
	c->done = true;
	separate_end(&c->process, r == 0);
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
