// SPDX-License-Identifier: BSD-2-Clause
/* Loading saved snapshots and writing reports: see saved.h. */
#include "saved.h"

#include <errno.h>
#include <string.h>

#include "base/outfile.h"
#include "snapshot/load.h"
#include "snapshot/merge.h"

const char *const saved_clocks[] = {"", "cpu", "wall", NULL};

static void free_all(struct snapshot **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		snapshot_free(list[i]);
	free(list);
}

static int check_clocks(struct snapshot *const *list, size_t n, struct diag *diag)
{
	for (size_t i = 1; i < n; i++)
		if (list[i]->clock != list[0]->clock)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "select one with --clock",
					"some of the files show cpu time, others wall time");
	return 0;
}

/* Snapshots that were saved with different filters cannot be added. */
static int check_alike(struct snapshot *const *list, size_t n, struct diag *diag)
{
	for (size_t i = 1; i < n; i++) {
		if (list[i]->folded != list[0]->folded)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
					"save all files with --only-my-code, or none",
					"some of the files have library code folded");
		if (!list[i]->builtins_of != !list[0]->builtins_of ||
		    (list[i]->builtins_of &&
		     strcmp(list[i]->builtins_of, list[0]->builtins_of) != 0))
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
					"save all files with the same --builtins-of, or none",
					"the files have rows for different C functions");
		if (list[i]->stripped != list[0]->stripped)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
					"save all files with --strip-dirs, or none",
					"some of the files have file names without directories");
	}
	for (size_t i = 1; i < n; i++)
		if (snapshot_modes(list[i]) != snapshot_modes(list[0]))
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
					"merge only files of the same --mode",
					"the files have different modes: traced, "
					"counted and sampled figures cannot be added");
	for (size_t i = 1; i < n; i++)
		if (snapshot_builtins(list[i]) != snapshot_builtins(list[0]))
			return diag_set(
				diag, -EINVAL, PYP_EXIT_USAGE,
				"merge only files with --builtins, or only files without",
				"some of the files have rows for C functions and others do not: a "
				"function's own time differs between them");
	return 0;
}

/* Overlapping snapshots would count calls twice. */
static int check_overlaps(struct snapshot *const *list, char *const *files, size_t n,
			  struct diag *diag)
{
	uint32_t pid;

	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (snapshot_overlap(list[k], list[i], &pid))
				return diag_set(
					diag, -EINVAL, PYP_EXIT_USAGE,
					"use only the later one, or run `pyprofctl clear` "
					"between two snapshots",
					"'%.180s' and '%.180s' overlap: both contain the same "
					"calls of process %u",
					files[k], files[i], pid);
	return 0;
}

static int merge(struct snapshot **list, char *const *files, size_t n, int clock,
		 struct snapshot **ret, struct diag *diag)
{
	int err = clock ? 0 : check_clocks(list, n, diag);

	if (!err)
		err = check_alike(list, n, diag);
	if (!err)
		err = check_overlaps(list, files, n, diag);
	if (err < 0)
		return err;
	if (n == 1) {
		*ret = TAKE_PTR(list[0]);
		return 0;
	}
	err = snapshot_merge((const struct snapshot *const *)list, n, ret);
	return err ? diag_errno(diag, -err, "cannot merge the files") : 0;
}

int saved_load(char *const *files, size_t n, int clock, struct snapshot **ret, struct diag *diag)
{
	struct snapshot **list = calloc(n + 1, sizeof(struct snapshot *));
	int err = list ? 0 : diag_errno(diag, ENOMEM, "cannot read the files");

	for (size_t i = 0; i < n && !err; i++)
		err = snapshot_load(files[i], &list[i], diag);
	if (!err)
		err = merge(list, files, n, clock, ret, diag);
	if (list)
		free_all(list, n);
	return err;
}

int saved_write(const char *path, FILE *out, saved_write_fn fn, void *ctx, struct diag *diag)
{
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	int err;

	if (!path)
		return fn(ctx, out, diag);
	err = outfile_open(path, &of, diag);
	if (!err)
		err = fn(ctx, outfile_stream(of), diag);
	return err ? err : outfile_commit(of, diag);
}
