// SPDX-License-Identifier: BSD-2-Clause
/* The helper process that measures probe costs: see calibration.h. */
#include "verify/calibration.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/helper.h"
#include "probe/probe.h"
#include "verify/cache.h"
#include "verify/measure.h"

#define LIMIT_NS UINT64_C(8000000000)

struct calibration {
	unsigned int shares; /* owners in addition to the first */
	struct helper helper;
	bool done;
	struct cost cost, received;
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

static void run(struct helper_side *side)
{
	const struct verify_opts *o = side->ctx;
	struct cost c = learn_cost(o);

	cache_store_cost(o, &c);
	probe_end();
	if (write(side->chan, &c, sizeof(c)) != sizeof(c))
		_exit(1);
}

struct calibration *calibration_start(const struct verify_opts *opts)
{
	_cleanup_(calibration_freep) struct calibration *c = calloc(1, sizeof(*c));
	const struct helper_opts ho = {
		.flags = HELPER_STDIO,
		.limit_ns = LIMIT_NS,
		.fds = {opts->target ? opts->target->pidfd : -1},
		.nfds = 1,
	};

	if (!c)
		return NULL;
	c->helper = HELPER_NONE;
	return helper_start(&ho, run, (void *)opts, &c->helper) == 0 ? TAKE_PTR(c) : NULL;
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
	helper_end(&c->helper);
	free(c);
}

bool calibration_wait(struct calibration *c, int ms)
{
	struct pollfd p = {.fd = c->helper.fd, .events = POLLIN};
	int r;

	if (c->done)
		return true;
	(void)poll(&p, 1, ms);
	r = helper_read(&c->helper, &c->received, sizeof(c->received));
	if (r == -EINPROGRESS)
		return false;
	c->done = true;
	if (r == 0) {
		c->cost = c->received;
		helper_leave(&c->helper); /* it is about to exit */
	} else {
		helper_end(&c->helper);
	}
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
