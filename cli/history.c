// SPDX-License-Identifier: BSD-2-Clause
/* Intervals of continuous mode: see history.h. */
#include "history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "history/disk.h"
#include "history/keep.h"
#include "history/sum.h"
#include "history/where.h"

/* ---- the daemon's ---- */

static char *add_time(struct client *c, char *path, const char *key, uint64_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, ns);
	return client_add_param(c, path, key, text);
}

static char *path_of(struct client *c, const char *route, const struct history_of *of)
{
	char *path = add_time(c, strdup(route), "from", of->span.from_ns);

	path = add_time(c, path, "to", of->span.to_ns);
	for (size_t i = 0; i < of->nwhere; i++)
		path = client_add_param(c, path, "where", of->where[i]);
	return path;
}

static int no_memory(struct diag *diag)
{
	return diag_errno(diag, ENOMEM, "cannot read the history");
}

static int list_from_daemon(const struct history_of *of, json_t **ret, struct diag *diag)
{
	_cleanup_(client_freep) struct client *c = NULL;
	_cleanup_free_ char *path = NULL;
	int r = client_open(of->socket, &c, diag);

	if (r < 0)
		return r;
	path = path_of(c, "/v1/history", of);
	return path ? client_request(c, "GET", path, NULL, ret, diag) : no_memory(diag);
}

static int each_from_daemon(const struct history_of *of, gz_unpack_fn fn, void *ctx,
			    struct diag *diag)
{
	_cleanup_(client_freep) struct client *c = NULL;
	_cleanup_free_ char *path = NULL, *data = NULL;
	size_t n = 0;
	int r = client_open(of->socket, &c, diag);

	if (r < 0)
		return r;
	path = path_of(c, "/v1/history/intervals", of);
	r = path ? client_fetch(c, path, &data, &n, diag) : no_memory(diag);
	return r < 0 || !data ? r : gz_unpack(data, n, "the daemon's history", fn, ctx, diag);
}

/* ---- a directory's ---- */

struct selecting {
	const struct where *where;
	gz_unpack_fn fn;
	void *ctx;
};

static int select_one(void *ctx, struct interval *iv, struct diag *diag)
{
	const struct selecting *s = ctx;

	if (where_matches(s->where, iv->labels, iv->nlabels))
		return s->fn(s->ctx, iv, diag);
	interval_free(iv);
	return 0;
}

static int each_from_dir(const struct history_of *of, gz_unpack_fn fn, void *ctx, struct diag *diag)
{
	_cleanup_(where_freep) struct where *where = NULL;
	struct selecting s = {.fn = fn, .ctx = ctx};
	size_t bad = 0;
	int r = where_new(of->where, of->nwhere, &where, diag);

	s.where = where;
	if (r == 0)
		r = disk_read(of->dir, &of->span, select_one, &s, &bad, diag);
	if (r == 0 && bad)
		fprintf(stderr,
			"pyprofctl: %zu files in '%s' are damaged or unreadable and left out\n",
			bad, of->dir);
	return r;
}

static int list_one(void *ctx, struct interval *iv, struct diag *diag)
{
	_cleanup_(interval_freep) struct interval *owned = iv;
	_cleanup_(kept_freep) struct kept *k = kept_new(iv, NULL, 0);

	if (!k || json_array_append_new(ctx, kept_json(k)) < 0)
		return no_memory(diag);
	return 0;
}

static int list_from_dir(const struct history_of *of, json_t **ret, struct diag *diag)
{
	json_t *list = json_array();
	int r = each_from_dir(of, list_one, list, diag);

	if (r < 0)
		json_decref(list);
	else
		*ret = json_pack("{s:o}", "intervals", list);
	return r;
}

/* ---- either ---- */

int history_list(const struct history_of *of, json_t **ret, struct diag *diag)
{
	return of->dir ? list_from_dir(of, ret, diag) : list_from_daemon(of, ret, diag);
}

int history_each(const struct history_of *of, gz_unpack_fn fn, void *ctx, struct diag *diag)
{
	return of->dir ? each_from_dir(of, fn, ctx, diag) : each_from_daemon(of, fn, ctx, diag);
}

static int add_one(void *ctx, struct interval *iv, struct diag *diag)
{
	return sum_add(ctx, iv, diag);
}

int history_sum(const struct history_of *of, const char *text, struct snapshot **ret,
		struct diag *diag)
{
	_cleanup_(sum_freep) struct sum *sum = sum_new();
	int r;

	if (!sum)
		return no_memory(diag);
	r = history_each(of, add_one, sum, diag);
	if (r < 0)
		return r;
	if (!sum_count(sum))
		return diag_set(diag, -ENOENT, PYP_EXIT_NO_PROCESS,
				"`pyprofctl history` lists what there is",
				"there are no intervals of '%.100s'", text);
	return sum_take(sum, ret, diag);
}
