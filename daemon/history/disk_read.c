// SPDX-License-Identifier: BSD-2-Clause
/* Reading a directory of intervals: see disk.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "history/disk.h"
#include "history/disk_index.h"
#include "history/disk_tree.h"
#include "history/keep.h"

/* A file's name has the time of the cut, which ends its intervals: these are no longer than this. */
#define LONGEST_S 3700

struct reading {
	const struct when_span *span;
	gz_unpack_fn fn;
	void *ctx;
	int failed; /* of fn: ends the reading */
};

static int deliver(void *ctx, struct interval *iv, struct diag *diag)
{
	struct reading *r = ctx;

	if (!kept_is_in(iv->start_unix_ns, iv->end_unix_ns, r->span->from_ns, r->span->to_ns)) {
		interval_free(iv);
		return 0;
	}
	r->failed = r->fn(r->ctx, iv, diag);
	return r->failed;
}

static bool may_contain(const struct disk_file *f, const struct when_span *span)
{
	const int64_t at = disk_file_time(f), from = (int64_t)(span->from_ns / 1000000000u);
	const int64_t to = (int64_t)(span->to_ns / 1000000000u);

	return at >= from && at <= to + LONGEST_S;
}

/* A damaged file is left out; what precedes the damage counts. */
static int read_file(int dir, const struct disk_file *f, struct reading *r, size_t *bad,
		     struct diag *diag)
{
	_cleanup_free_ char *data = NULL;
	struct diag why = {0};
	size_t size = 0, at = 0;
	int err = disk_file_read(dir, f->name, &data, &size);

	if (err == -ENOENT) /* the daemon has removed it */
		return 0;
	if (err == 0 && disk_file_span(f))
		err = disk_index_read(data, size, NULL, NULL, &at);
	if (err == 0)
		err = gz_unpack(data + at, size - at, f->name, deliver, r, &why);
	if (r->failed < 0) {
		*diag = why;
		return r->failed;
	}
	*bad += err < 0;
	return 0;
}

int disk_read(const char *path, const struct when_span *span, gz_unpack_fn fn, void *ctx,
	      size_t *ret_bad, struct diag *diag)
{
	_cleanup_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lock = -1;
	struct reading reading = {.span = span, .fn = fn, .ctx = ctx};
	struct disk_tree tree = {0};
	int r = dir < 0 ? -errno : disk_lock(dir, false, &lock);

	if (r == 0)
		r = disk_tree_scan(dir, &tree);

	*ret_bad = 0;
	if (r < 0)
		return diag_errno(diag, -r, "cannot read the directory '%.200s'", path);
	for (size_t i = 0; i < tree.n && r == 0; i++)
		if (may_contain(&tree.v[i], span))
			r = read_file(dir, &tree.v[i], &reading, ret_bad, diag);
	disk_tree_deinit(&tree);
	return r;
}
