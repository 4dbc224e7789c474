// SPDX-License-Identifier: BSD-2-Clause
/* Named moments of the profile: see marks.h. */
#include "server/marks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/since.h"

static const char name_chars[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

int marks_check(const char *name, struct diag *diag)
{
	size_t n = strlen(name);

	if (n > 0 && n < MARKS_NAME_MAX && strspn(name, name_chars) == n)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"expected 1 to 63 letters, digits, '.', '-' and '_'",
			"invalid name '%.80s'", name);
}

static void drop(struct mark *mark)
{
	snapshot_free(mark->snapshot);
	*mark = (struct mark){0};
}

static struct mark *find(struct marks *m, const char *name)
{
	for (size_t i = 0; i < MARKS_MAX; i++)
		if (m->v[i].snapshot && strcmp(m->v[i].name, name) == 0)
			return &m->v[i];
	return NULL;
}

/* A free one, or the one that was used least recently. Free ones were never used. */
static struct mark *oldest(struct marks *m, bool in_use)
{
	struct mark *ret = NULL;

	for (size_t i = 0; i < MARKS_MAX; i++)
		if ((!in_use || m->v[i].snapshot) && (!ret || m->v[i].used < ret->used))
			ret = &m->v[i];
	return ret;
}

static size_t sum(const struct marks *m)
{
	size_t ret = 0;

	for (size_t i = 0; i < MARKS_MAX; i++)
		ret += m->v[i].bytes;
	return ret;
}

int marks_exchange(struct marks *m, const char *name, const struct snapshot *s,
		   struct snapshot **ret, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *copy = snapshot_copy(s), *before = NULL;
	size_t bytes = copy ? snapshot_bytes(copy) : 0, max = m->max ? m->max : MARKS_BYTES;
	struct mark *mark = find(m, name);

	if (!copy)
		return diag_errno(diag, ENOMEM, "cannot keep the snapshot");
	if (bytes > max)
		return diag_set(
			diag, -EFBIG, PYP_EXIT_FAILURE,
			"take whole snapshots as json and compare them with `pyprofctl diff`",
			"a snapshot of %zu MiB is too large to be kept for the next one",
			bytes >> 20);
	if (mark) {
		before = TAKE_PTR(mark->snapshot);
		*mark = (struct mark){0};
	}
	while (sum(m) + bytes > max)
		drop(oldest(m, true));
	mark = oldest(m, false);
	drop(mark);
	*mark = (struct mark){.snapshot = TAKE_PTR(copy), .bytes = bytes, .used = ++m->clock};
	snprintf(mark->name, sizeof(mark->name), "%s", name);
	*ret = TAKE_PTR(before);
	return 0;
}

void marks_deinit(struct marks *m)
{
	for (size_t i = 0; i < MARKS_MAX; i++)
		drop(&m->v[i]);
}
