// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adding up intervals: see sum.h.
 *
 * Merging recognises a process and its threads by their start times, which in intervals are those of
 * the interval. They are therefore replaced by those of the process's first interval.
 */
#include "history/sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/strtab.h"
#include "snapshot/merge.h"

/* Intervals that are merged at a time: more take more memory, fewer take more time. */
#define BATCH 64

struct process {
	char *host, *cmdline; /* owned */
	uint32_t pid;
	uint64_t start_ns, start_unix_ns; /* in the sum */
	uint64_t first_unix_ns;		  /* the earliest of all intervals */
};

struct sum {
	struct snapshot *batch[BATCH + 1]; /* [0]: the sum so far, if there is one */
	size_t nbatch;
	struct process *processes;
	size_t nprocesses, room;
	struct map ids; /* hashes of ids that were added */
	size_t n;
};

struct sum *sum_new(void)
{
	return calloc(1, sizeof(struct sum));
}

void sum_free(struct sum *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nbatch; i++)
		snapshot_free(s->batch[i]);
	for (size_t i = 0; i < s->nprocesses; i++) {
		free(s->processes[i].host);
		free(s->processes[i].cmdline);
	}
	free(s->processes);
	map_deinit(&s->ids);
	free(s);
}

size_t sum_count(const struct sum *s)
{
	return s->n;
}

/* ---- processes ---- */

static const char *text_of(const char *text)
{
	return text ? text : "";
}

static struct process *find(struct sum *s, const char *host, const struct snapshot_target *t)
{
	for (size_t i = s->nprocesses; i-- > 0;) {
		struct process *p = &s->processes[i];

		if (p->pid == t->pid && strcmp(p->host, text_of(host)) == 0 &&
		    strcmp(p->cmdline, text_of(t->cmdline)) == 0)
			return p;
	}
	return NULL;
}

static int add_process(struct sum *s, const char *host, const struct snapshot_target *t)
{
	struct process p = {.host = strdup(text_of(host)),
			    .cmdline = strdup(text_of(t->cmdline)),
			    .pid = t->pid,
			    .start_ns = t->start_ns,
			    .start_unix_ns = t->start_unix_ns,
			    .first_unix_ns = t->start_unix_ns};
	size_t room = s->room ? 2 * s->room : 64;
	struct process *v = s->nprocesses < s->room ? s->processes
						    : reallocarray(s->processes, room, sizeof(*v));

	if (v && v != s->processes)
		s->room = room;
	if (v)
		s->processes = v;
	if (!v || !p.host || !p.cmdline) {
		free(p.host);
		free(p.cmdline);
		return -ENOMEM;
	}
	s->processes[s->nprocesses++] = p;
	return 0;
}

static void align_threads(struct snapshot *s, uint32_t pid, uint64_t start_ns)
{
	for (uint32_t i = 0; i < s->nthreads; i++)
		if (s->threads[i].pid == pid)
			s->threads[i].start_ns = start_ns;
}

static int align(struct sum *sum, struct snapshot *s)
{
	for (uint32_t i = 0; i < s->ntargets; i++) {
		struct snapshot_target *t = &s->targets[i];
		struct process *p = find(sum, s->host, t);

		if (!p && add_process(sum, s->host, t) < 0)
			return -ENOMEM;
		if (!p)
			p = &sum->processes[sum->nprocesses - 1];
		if (t->start_unix_ns < p->first_unix_ns)
			p->first_unix_ns = t->start_unix_ns;
		t->start_ns = p->start_ns;
		t->start_unix_ns = p->start_unix_ns;
		align_threads(s, t->pid, p->start_ns);
	}
	return 0;
}

/* ---- adding ---- */

static int merge_batch(struct sum *s)
{
	struct snapshot *merged;
	int r;

	if (s->nbatch < 2)
		return 0;
	r = snapshot_merge((const struct snapshot *const *)s->batch, s->nbatch, &merged);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->nbatch; i++)
		snapshot_free(s->batch[i]);
	s->batch[0] = merged;
	s->nbatch = 1;
	return 0;
}

static int check_alike(const struct sum *s, const struct snapshot *new, struct diag *diag)
{
	const struct snapshot *old = s->nbatch ? s->batch[0] : new;

	if (snapshot_modes(old) == snapshot_modes(new) && old->clock == new->clock &&
	    snapshot_builtins(old) == snapshot_builtins(new))
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"select some by --where, or a span of one mode",
			"the intervals were measured in different modes: their figures cannot be "
			"added");
}

/* Returns whether it is new. */
static bool note_id(struct sum *s, const uint8_t *id, int *err)
{
	uint64_t hash = strtab_hash(0, id, INTERVAL_ID_BYTES);
	uint32_t one;

	if (map_get(&s->ids, hash, &one))
		return false;
	*err = map_put(&s->ids, hash, 1);
	return true;
}

int sum_add(struct sum *s, struct interval *iv, struct diag *diag)
{
	_cleanup_(interval_freep) struct interval *owned = iv;
	int r = 0;

	if (!note_id(s, iv->id, &r))
		return 0;
	if (r == 0)
		r = check_alike(s, iv->snapshot, diag);
	if (r == -EINVAL)
		return r;
	if (r == 0)
		r = align(s, iv->snapshot);
	if (r == 0 && s->nbatch > BATCH)
		r = merge_batch(s);
	if (r < 0)
		return diag_errno(diag, -r, "cannot add up the intervals");
	s->batch[s->nbatch++] = TAKE_PTR(owned->snapshot);
	s->n++;
	return 0;
}

int sum_take(struct sum *s, struct snapshot **ret, struct diag *diag)
{
	struct snapshot *result;
	int r = merge_batch(s);

	if (r < 0)
		return diag_errno(diag, -r, "cannot add up the intervals");
	result = s->batch[0];
	s->nbatch = 0;
	for (size_t i = 0; i < s->nprocesses; i++)
		for (uint32_t k = 0; k < result->ntargets; k++) {
			const struct process *p = &s->processes[i];
			struct snapshot_target *t = &result->targets[k];

			if (t->pid == p->pid && t->start_unix_ns == p->start_unix_ns)
				t->start_unix_ns = p->first_unix_ns;
		}
	*ret = result;
	return 0;
}
