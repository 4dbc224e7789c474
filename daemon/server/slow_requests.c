// SPDX-License-Identifier: BSD-2-Clause
/* Requests about slow calls: see slow_requests.h. */
#include "server/slow_requests.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "server/status_json.h"
#include "slow/slow.h"

static int slow_opts_of(const struct request *rq, struct slow_opts *ret, struct diag *diag)
{
	const char *over = request_get(rq, "over"), *clock = request_get(rq, "clock");
	const char *n = request_get(rq, "n");
	uint64_t kept = 0;

	*ret = (struct slow_opts){.match = request_get(rq, "match"), .clock = SNAPSHOT_WALL};
	if (over && parse_duration(over, &ret->over_ns) < 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected e.g. 0.2, 200ms",
				"invalid limit '%s'", over);
	if (n && parse_u64(n, 1, SLOW_KEPT_MAX, &kept) < 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected 1 to 200",
				"invalid number of calls '%s'", n);
	ret->n = (uint32_t)kept;
	if (clock && strcmp(clock, "cpu") != 0 && strcmp(clock, "wall") != 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected cpu or wall",
				"invalid clock '%s'", clock);
	if (clock && strcmp(clock, "cpu") == 0)
		ret->clock = SNAPSHOT_CPU;
	return 0;
}

int slow_request_begin(struct sessions *ss, const struct request *rq, struct response *rs,
		       struct diag *diag)
{
	struct slow_opts o;
	uint32_t id = 0;
	pid_t pid = 0;
	int r;

	r = slow_opts_of(rq, &o, diag);
	if (r == 0)
		r = request_get_pid(rq, "pid", &pid, diag);
	if (r == 0)
		r = sessions_slow_begin(ss, pid, &o, &id, diag);
	if (r < 0)
		return r;
	snprintf(rs->location, sizeof(rs->location), "/v1/slow/%u", id);
	return response_set_json(rs, 201,
				 json_pack("{s:i, s:o}", "id", (int)id, "targets",
					   json_of_targets(ss, pid)));
}

int slow_request_read(struct sessions *ss, const struct request *rq, uint32_t id,
		      struct response *rs, struct diag *diag)
{
	bool trees = true, steps = false;
	json_t *o = NULL;
	int r;

	r = request_get_bool(rq, "trees", &trees, diag);
	if (r == 0)
		r = request_get_bool(rq, "steps", &steps, diag);
	if (r == 0)
		r = sessions_slow_read(ss, id,
				       !trees  ? SLOW_COUNTERS
				       : steps ? SLOW_STEPS
					       : SLOW_TREES,
				       &o, diag);
	return r < 0 ? r : response_set_json(rs, 200, o);
}

int slow_request_end(struct sessions *ss, uint32_t id, struct response *rs, struct diag *diag)
{
	int r = sessions_slow_end(ss, id, diag);

	return r < 0 ? r : response_set_json(rs, 200, json_pack("{s:i}", "ended", (int)id));
}
