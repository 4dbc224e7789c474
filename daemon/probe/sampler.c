// SPDX-License-Identifier: BSD-2-Clause
/* Sampling timers: see sampler.h. */
#include "probe/sampler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NS_PER_S UINT64_C(1000000000)

struct sampler {
	int n;
	int fds[];
};

uint64_t sampler_period(uint32_t rate)
{
	return NS_PER_S / (rate ? rate : 1);
}

struct pyp_sampling sampler_layout(const struct layout *l, const struct probe_sampling *s)
{
	return (struct pyp_sampling){
		.period = sampler_period(s->rate),
		.interp_next = l->interp_next,
		.interp_threads = l->interp_threads_head,
		.ts_next = l->ts_next,
		.ts_thread_id = l->ts_thread_id,
		.ts_frame = l->ts_frame,
		.ts_cframe = l->ts_cframe,
		.cframe_current = l->cframe_current,
		.when = s->when,
		.top = s->top,
	};
}

/*
 * A cpu-clock event per CPU counts time while any task runs on it and does not interrupt idle CPUs.
 */
static int clock_open(int cpu, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.exclude_idle = 1,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
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
		close(s->fds[i]);
	free(s);
}
DEFINE_FREEP(struct sampler, sampler_free)

int sampler_open(int prog_fd, uint64_t period_ns, struct sampler **ret)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	_cleanup_(sampler_freep) struct sampler *s = NULL;

	if (cpus <= 0)
		return -ENODEV;
	s = calloc(1, sizeof(*s) + (size_t)cpus * sizeof(s->fds[0]));
	if (!s)
		return -ENOMEM;
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = clock_open(cpu, period_ns), r;

		if (fd == -ENODEV) /* the CPU is offline */
			continue;
		if (fd < 0)
			return fd;
		s->fds[s->n++] = fd;
		r = clock_start(fd, prog_fd);
		if (r < 0)
			return r;
	}
	if (!s->n)
		return -ENODEV;
	*ret = TAKE_PTR(s);
	return 0;
}
