// SPDX-License-Identifier: BSD-2-Clause
/* Sampling timers: see sampler.h. */
#include "probe/sampler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "probe/sample_cost.h"

#define NS_PER_S UINT64_C(1000000000)

/* CPUs whose period is changed at a time; and between two changes, at least this time and this many
 * periods, as each change loses half a sample */
#define JITTER_CPUS    4
#define JITTER_NS      (20 * (NS_PER_S / 1000))
#define JITTER_PERIODS 16u
/* By how much rates differ from the mean: in 16 periods, a whole one of a program in step with them */
#define PPM_MIN 20000
#define PPM_MAX 120000

struct sampler {
	uint64_t period_ns, changed_ns, random;
	int n, next; /* next: whose period is changed next */
	struct timer {
		int fd, ppm; /* ppm: by how much its present rate differs from the mean */
	} v[];
};

uint64_t sampler_period(uint32_t rate)
{
	return NS_PER_S / (rate ? rate : 1);
}

/* One that takes no more than the share of the CPU time that it may. */
static uint64_t period_of(const struct probe_sampling *s)
{
	const uint64_t period = sampler_period(s->rate);
	const double least = s->share > 0 ? sample_cost_ns() / s->share : 0;

	return (double)period < least ? (uint64_t)least : period;
}

struct pyp_sampling sampler_layout(const struct layout *l, const struct probe_sampling *s)
{
	return (struct pyp_sampling){
		.period = period_of(s),
		.interp_next = l->interp_next,
		.interp_threads = l->interp_threads_head,
		.ts_next = l->ts_next,
		.ts_thread_id = l->ts_thread_id,
		.ts_frame = l->ts_frame,
		.ts_cframe = l->ts_cframe,
		.cframe_current = l->cframe_current,
		.when = s->when,
		.top = s->top,
		.instr_unit = l->lasti_unit,
	};
}

static int clock_start(int fd, int prog_fd)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	return 0;
}

void sampler_free(struct sampler *s)
{
	for (int i = 0; s && i < s->n; i++)
		close(s->v[i].fd);
	free(s);
}
DEFINE_FREEP(struct sampler, sampler_free)

int sampler_open(int prog_fd, uint64_t period_ns, struct sampler **ret)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	_cleanup_(sampler_freep) struct sampler *s = NULL;

	if (cpus <= 0)
		return -ENODEV;
	s = calloc(1, sizeof(*s) + (size_t)cpus * sizeof(s->v[0]));
	if (!s)
		return -ENOMEM;
	s->period_ns = period_ns;
	/* Any number but 0: it need not be secret. */
	s->random = clock_monotonic_ns() | 1;
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = sample_clock_open(-1, cpu, period_ns), r;

		if (fd == -ENODEV) /* the CPU is offline */
			continue;
		if (fd < 0)
			return fd;
		s->v[s->n++].fd = fd;
		r = clock_start(fd, prog_fd);
		if (r < 0)
			return r;
	}
	if (!s->n)
		return -ENODEV;
	*ret = TAKE_PTR(s);
	return 0;
}

int sampler_next_rate(int ppm, uint32_t random)
{
	/* Each deviation is followed by its opposite, so that they do not change the total. */
	return ppm > 0 ? -ppm : PPM_MIN + (int)(random % (unsigned int)(PPM_MAX - PPM_MIN));
}

uint64_t sampler_block_period(uint64_t period_ns, uint64_t block_ns, int ppm)
{
	/* The time since the last sample is lost when the timer restarts: half a period on average. */
	double samples = (double)block_ns / (double)period_ns * (1 + ppm / 1e6) + 0.5;

	return (uint64_t)((double)block_ns / samples);
}

static uint32_t next_random(struct sampler *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (uint32_t)(s->random >> 32);
}

void sampler_jitter(struct sampler *s, uint64_t now_ns)
{
	uint64_t passed = s ? now_ns - s->changed_ns : 0, block, period;
	const int turns = s ? (s->n + JITTER_CPUS - 1) / JITTER_CPUS : 0;

	if (!s || passed < JITTER_NS || passed * (uint64_t)turns < JITTER_PERIODS * s->period_ns)
		return;
	/* The next change will be as late as this one. */
	block = s->changed_ns ? passed * (uint64_t)turns : JITTER_PERIODS * s->period_ns;
	s->changed_ns = now_ns;
	for (int i = 0; i < JITTER_CPUS && i < s->n; i++) {
		struct timer *t = &s->v[s->next];

		t->ppm = sampler_next_rate(t->ppm, next_random(s));
		period = sampler_block_period(s->period_ns, block, t->ppm);
		(void)ioctl(t->fd, PERF_EVENT_IOC_PERIOD, &period);
		s->next = (s->next + 1) % s->n;
	}
}
