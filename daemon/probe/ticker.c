// SPDX-License-Identifier: BSD-2-Clause
/* Sampling timers that targets share: see ticker.h and bpf/tick.bpf.c. */
#include "probe/ticker.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "probe/programs.h"
#include "probe/sampler.h"
#include "pyprof.skel.h"
#include "pyprof/bpf_abi.h"
#include "pyprof/bpf_params.h"

/* The timers of one period. */
struct timers {
	struct timers *next;
	uint64_t period_ns;
	struct pyprof_bpf *skel;
	struct sampler *sampler;
	unsigned int refs;
	bool used[PYP_TICK_TARGETS];
};

struct ticker {
	struct timers *timers;	 /* NULL: it has its own */
	struct sampler *sampler; /* borrowed, if it shares */
	uint32_t pid, index;
	bool counted; /* in `own` */
};

/* Timers that are not shared; more would take too much of every CPU. */
#define OWN_MAX 8

static struct timers *all_timers;
static struct pyprof_bpf *spare; /* loaded for the next timers; NULL: none */
static unsigned int own;
static unsigned int users; /* see ticker_prepare */

/* No target is in its maps any more. */
static void timers_free(struct timers *t)
{
	if (!t)
		return;
	sampler_free(t->sampler);
	if (spare || !users)
		pyprof_bpf__destroy(t->skel);
	else
		spare = t->skel;
	free(t);
}
DEFINE_FREEP(struct timers, timers_free)

static int timers_open(uint64_t period_ns, struct timers **ret)
{
	_cleanup_(timers_freep) struct timers *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->period_ns = period_ns;
	t->skel = TAKE_PTR(spare);
	r = t->skel ? 0 : programs_open_tick(&t->skel);
	if (r == 0)
		r = sampler_open(bpf_program__fd(t->skel->progs.on_tick), period_ns, &t->sampler);
	if (r < 0)
		return r;
	t->next = all_timers;
	all_timers = t;
	*ret = TAKE_PTR(t);
	return 0;
}

static struct timers *timers_find(uint64_t period_ns)
{
	struct timers *t = all_timers;

	while (t && t->period_ns != period_ns)
		t = t->next;
	return t;
}

static int timers_get(uint64_t period_ns, struct timers **ret)
{
	*ret = timers_find(period_ns);
	return *ret ? 0 : timers_open(period_ns, ret);
}

/* Frees the timers if no target uses them. */
static void timers_put(struct timers *t)
{
	if (t->refs)
		return;
	for (struct timers **p = &all_timers; *p; p = &(*p)->next)
		if (*p == t) {
			*p = t->next;
			break;
		}
	timers_free(t);
}

/* Adds the target; the program first, so that the index is valid when it is found. */
static int timers_add(struct timers *t, int prog_fd, uint32_t pid, uint32_t *ret_index)
{
	const int programs = bpf_map__fd(t->skel->maps.tick_programs);
	const int targets = bpf_map__fd(t->skel->maps.tick_targets);
	uint32_t i = 0, fd = (uint32_t)prog_fd;

	while (i < PYP_TICK_TARGETS && t->used[i])
		i++;
	if (i == PYP_TICK_TARGETS)
		return -ENOSPC;
	if (bpf_map_update_elem(programs, &i, &fd, BPF_ANY) < 0)
		return -errno;
	if (bpf_map_update_elem(targets, &pid, &i, BPF_NOEXIST) < 0) {
		int r = -errno;

		bpf_map_delete_elem(programs, &i);
		return r;
	}
	t->used[i] = true;
	t->refs++;
	*ret_index = i;
	return 0;
}

static void timers_remove(struct timers *t, const struct ticker *ticker)
{
	bpf_map_delete_elem(bpf_map__fd(t->skel->maps.tick_targets), &ticker->pid);
	bpf_map_delete_elem(bpf_map__fd(t->skel->maps.tick_programs), &ticker->index);
	t->used[ticker->index] = false;
	t->refs--;
	timers_put(t);
}

static int share(struct ticker *t, int prog_fd, uint64_t period_ns)
{
	struct timers *timers;
	int r = timers_get(period_ns, &timers);

	if (r < 0)
		return r;
	r = timers_add(timers, prog_fd, t->pid, &t->index);
	if (r < 0) {
		timers_put(timers);
		return r;
	}
	t->timers = timers;
	t->sampler = timers->sampler;
	return 0;
}

static int ticker_new(pid_t pid, struct ticker **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->pid = (uint32_t)pid;
	return 0;
}

int ticker_open(int prog_fd, pid_t pid, uint64_t period_ns, struct ticker **ret)
{
	_cleanup_(ticker_freep) struct ticker *t = NULL;
	int r = ticker_new(pid, &t);

	if (r == 0)
		r = share(t, prog_fd, period_ns);
	if (r < 0 && t && own < OWN_MAX) {
		r = sampler_open(prog_fd, period_ns, &t->sampler);
		t->counted = r == 0;
		own += t->counted;
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(t);
	return 0;
}

int ticker_open_own(int prog_fd, uint64_t period_ns, struct ticker **ret)
{
	_cleanup_(ticker_freep) struct ticker *t = NULL;
	int r = ticker_new(0, &t);

	if (r == 0)
		r = sampler_open(prog_fd, period_ns, &t->sampler);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(t);
	return 0;
}

void ticker_prepare(uint64_t period_ns)
{
	users++;
	/* Without it, each target has timers of its own. */
	if (!spare && !timers_find(period_ns))
		(void)programs_open_tick(&spare);
}

void ticker_done(void)
{
	if (--users == 0)
		pyprof_bpf__destroy(TAKE_PTR(spare));
}

void ticker_free(struct ticker *t)
{
	if (!t)
		return;
	if (t->timers)
		timers_remove(t->timers, t);
	else
		sampler_free(t->sampler);
	own -= t->counted;
	free(t);
}

void ticker_jitter(struct ticker *t, uint64_t now_ns)
{
	sampler_jitter(t ? t->sampler : NULL, now_ns);
}
