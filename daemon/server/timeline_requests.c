// SPDX-License-Identifier: BSD-2-Clause
/* Requests about timelines: see timeline_requests.h. */
#include "server/timeline_requests.h"

#include <errno.h>
#include <stdio.h>

#include "base/parse.h"
#include "server/status_json.h"
#include "timeline/timeline.h"
#include "timeline/wire.h"

static int timeline_opts_of(const struct request *rq, struct sessions_timeline *ret,
			    struct diag *diag)
{
	const char *duration = request_get(rq, "duration"), *buffer = request_get(rq, "buffer");
	const char *keep = request_get(rq, "keep");

	*ret = (struct sessions_timeline){.trigger = request_get(rq, "trigger")};
	if (duration && parse_duration(duration, &ret->duration_ns) < 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected e.g. 10, 250ms, 2m",
				"invalid duration '%s'", duration);
	if (buffer && (parse_size(buffer, &ret->buffer) < 0 || ret->buffer < TIMELINE_BUFFER_MIN ||
		       ret->buffer > TIMELINE_BUFFER_MAX))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected 64K to 1G",
				"invalid buffer '%s'", buffer);
	if (keep && parse_duration(keep, &ret->keep_ns) < 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected e.g. 10, 250ms, 2m",
				"invalid duration to keep '%s'", keep);
	if (ret->trigger && !keep)
		ret->keep_ns = TIMELINE_KEEP;
	return 0;
}

int timeline_request_begin(struct sessions *ss, const struct request *rq, struct response *rs,
			   struct diag *diag)
{
	struct sessions_timeline o;
	pid_t pid = 0;
	uint32_t id = 0;
	int r;

	r = timeline_opts_of(rq, &o, diag);
	if (r == 0)
		r = request_get_pid(rq, "pid", &pid, diag);
	if (r == 0)
		r = sessions_timeline_begin(ss, pid, &o, &id, diag);
	if (r < 0)
		return r;
	snprintf(rs->location, sizeof(rs->location), "/v1/timelines/%u", id);
	return response_set_json(rs, 201,
				 json_pack("{s:i, s:o}", "id", (int)id, "targets",
					   json_of_targets(ss, pid)));
}

int timeline_request_list(struct sessions *ss, struct response *rs)
{
	struct sessions_timeline_status st;
	json_t *list = json_array();

	for (size_t i = 0; sessions_timeline_status(ss, i, &st); i++)
		json_array_append_new(list, json_pack("{s:i, s:I, s:I, s:b, s:b}", "id", (int)st.id,
						      "waiting", (json_int_t)st.waiting, "dropped",
						      (json_int_t)st.dropped, "recent",
						      (int)st.recent, "ended", (int)st.ended));
	return response_set_json(rs, 200, json_pack("{s:o}", "timelines", list));
}

int timeline_request_read(struct sessions *ss, uint32_t id, struct response *rs, struct diag *diag)
{
	int r;

	r = sessions_timeline_read(ss, id, &rs->body, &rs->size, diag);
	if (r < 0)
		return r;
	rs->mime = TIMELINE_MIME;
	rs->status = 200;
	return 0;
}

int timeline_request_end(struct sessions *ss, uint32_t id, struct response *rs, struct diag *diag)
{
	int r;

	r = sessions_timeline_end(ss, id, diag);
	return r < 0 ? r : response_set_json(rs, 200, json_pack("{s:i}", "ended", (int)id));
}
