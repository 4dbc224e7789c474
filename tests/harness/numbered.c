// SPDX-License-Identifier: BSD-2-Clause
#include "harness/numbered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"

int numbered_resolve(void *ctx, uint64_t code, uint64_t announced_ns, struct code_names *ret)
{
	(void)ctx;
	(void)announced_ns;
	if (asprintf(&ret->name, "f%d", (int)((code - NUMBERED_CODE(0)) / 0x10)) < 0)
		return -1;
	ret->filename = strdup("t.py");
	ret->qualname = strdup(ret->name);
	ret->firstlineno = 1;
	return 0;
}

void profile_send(struct profile *p, uint64_t ts, uint8_t type, uint64_t frame, uint64_t code,
		  uint64_t caller)
{
	struct event e = {.ts = ts, .tid = 1, .type = type};

	e.u.call.frame = frame;
	e.u.call.code = code;
	e.u.call.caller = caller;
	profile_event(p, &e);
}

struct snapshot *profile_take(const struct profile *p, uint64_t now)
{
	struct snapshot *s = snapshot_new();

	cr_assert_not_null(s);
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	s->ntargets = 1;
	assert_ok(profile_snapshot(p, now, 42, s, s->targets));
	cr_assert(snapshot_valid(s));
	return s;
}
