// SPDX-License-Identifier: BSD-2-Clause
/* The sequence of self-tests: see selftest.h. */
#include "verify/selftest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/cache.h"
#include "verify/offload.h"

struct selftest {
	struct verify_opts opts;
	struct offload *running; /* NULL: none */
	bool second;		 /* the test of C functions' calls has begun */
	struct selftest_result result;
};

static struct verify_result *present(struct selftest *s)
{
	return s->second ? &s->result.builtins : &s->result.plan;
}

static void could_not_start(struct verify_result *v, const struct diag *why)
{
	*v = (struct verify_result){.verdict = VERIFY_NOT_RUN};
	snprintf(v->reason, sizeof(v->reason), "%.*s", (int)sizeof(v->reason) - 1, why->msg);
}

/* False: the result is there already. */
static bool begin(struct selftest *s, bool builtins)
{
	struct verify_opts o = s->opts;
	struct diag why = {0};
	int r;

	o.builtins = builtins;
	s->second = builtins;
	if (!builtins && !o.fresh && cache_load(&o, &s->result.plan) == 0)
		return false;
	r = offload_start(&o, &s->running, &why);
	if (r < 0)
		could_not_start(present(s), &why);
	return r == 0;
}

/* After a test that could not be run, the second one is not tried. */
static bool begin_second(struct selftest *s)
{
	if (s->second || !s->opts.builtins || s->result.plan.verdict != VERIFY_RIGHT)
		return false;
	s->result.has_builtins = true;
	return begin(s, true);
}

struct selftest *selftest_start(const struct verify_opts *opts)
{
	struct selftest *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->opts = *opts;
	if (!begin(s, false))
		(void)begin_second(s);
	return s;
}

void selftest_free(struct selftest *s)
{
	if (!s)
		return;
	offload_free(s->running);
	free(s);
}

bool selftest_poll(struct selftest *s, struct selftest_result *ret)
{
	if (s->running) {
		if (!offload_poll(s->running, present(s)))
			return false;
		offload_free(TAKE_PTR(s->running));
		if (begin_second(s))
			return false;
	}
	*ret = s->result;
	return true;
}

int selftest_fd(const struct selftest *s)
{
	return offload_fd(s->running);
}

uint64_t selftest_deadline(const struct selftest *s)
{
	return offload_deadline(s->running);
}
