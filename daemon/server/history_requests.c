// SPDX-License-Identifier: BSD-2-Clause
/* Requests for intervals: see history_requests.h. */
#include "server/history_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "history/keep.h"
#include "history/where.h"

struct selection {
	uint64_t from, to;
	struct where *where;
};

static void selection_deinit(struct selection *s)
{
	where_free(s->where);
}

static int time_of(const struct request *rq, const char *key, uint64_t *ret, struct diag *diag)
{
	const char *text = request_get(rq, key);

	if (!text || parse_u64(text, 0, INT64_MAX, ret) == 0)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected nanoseconds since 1970",
			"invalid time '%.100s'", text);
}

static int selection_of(const struct request *rq, struct selection *ret, struct diag *diag)
{
	const char *conditions[REQUEST_PARAMS_MAX];
	size_t n = 0;
	int r;

	ret->to = INT64_MAX;
	r = time_of(rq, "from", &ret->from, diag);
	if (r == 0)
		r = time_of(rq, "to", &ret->to, diag);
	for (size_t i = 0; i < rq->nparams; i++)
		if (strcmp(rq->params[i].key, "where") == 0)
			conditions[n++] = rq->params[i].value;
	return r < 0 ? r : where_new(conditions, n, &ret->where, diag);
}

static bool is_selected(const struct selection *s, const struct kept *k)
{
	return kept_is_in(k->start_unix_ns, k->end_unix_ns, s->from, s->to) &&
	       where_matches(s->where, k->labels, k->nlabels);
}

/* ---- answers ---- */

static int answer_list(const struct keep *keep, const struct selection *s, struct response *rs)
{
	json_t *list = json_array();
	const struct kept *k;

	for (size_t i = 0; (k = keep_get(keep, i)); i++)
		if (is_selected(s, k))
			json_array_append_new(list, kept_json(k));
	return response_set_json(rs, 200, json_pack("{s:o}", "intervals", list));
}

/* The response counts as a profile that is being sent. */
static int answer_bytes(const struct keep *keep, const struct selection *s, size_t room,
			struct response *rs, struct diag *diag)
{
	const struct kept *k;
	size_t size = 0, at = 0;

	for (size_t i = 0; (k = keep_get(keep, i)); i++)
		size += is_selected(s, k) ? k->size : 0;
	if (size > room)
		return diag_set(diag, -ENOBUFS, PYP_EXIT_FAILURE, "use a shorter span, or --where",
				"the intervals of this span take %zu MiB", size >> 20);
	rs->body = malloc(size + 1);
	if (!rs->body)
		return -ENOMEM;
	for (size_t i = 0; (k = keep_get(keep, i)); i++)
		if (is_selected(s, k)) {
			memcpy(rs->body + at, k->data, k->size);
			at += k->size;
		}
	rs->size = size;
	rs->mime = "application/gzip";
	rs->status = 200;
	return 0;
}

int history_request(const struct keep *keep, size_t room, const struct request *rq,
		    struct response *rs, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection s = {0};
	int r;

	if (!keep)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"start pyprofd with --continuous, or use --dir DIR",
				"the daemon keeps no history");
	r = selection_of(rq, &s, diag);
	if (r < 0)
		return r;
	if (strcmp(rq->path, HISTORY_INTERVALS) == 0)
		return answer_bytes(keep, &s, room, rs, diag);
	return answer_list(keep, &s, rs);
}
