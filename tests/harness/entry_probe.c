// SPDX-License-Identifier: BSD-2-Clause
/* Durations of a function: see entry_probe.h. */
#include "harness/entry_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness/test.h"

#define PMU	"/sys/bus/event_source/devices/uprobe/type"
#define RETURNS 1u /* in attr.config: a return probe (kernel/trace/trace_event_perf.c) */
#define PAGES	256u
#define EVENTS	64u

struct buffer {
	int fd;
	bool returns;
	struct perf_event_mmap_page *head;
	size_t size;
};

struct entry_probe {
	struct buffer v[EVENTS];
	size_t n;
};

/* A sample of PERF_SAMPLE_TID and PERF_SAMPLE_TIME */
struct record {
	struct perf_event_header h;
	uint32_t pid, tid;
	uint64_t time;
};

struct moment {
	uint64_t time;
	uint32_t tid;
	bool returns;
};

static uint32_t pmu_type(void)
{
	FILE *f = fopen(PMU, "re");
	unsigned int type = 0;

	if (!f || fscanf(f, "%u", &type) != 1)
		cr_skip_test("needs " PMU);
	fclose(f);
	return type;
}

static void add(struct entry_probe *p, const char *file, uint64_t offset, int cpu, bool returns)
{
	struct perf_event_attr attr = {
		.type = pmu_type(),
		.size = sizeof(attr),
		.config = returns ? RETURNS : 0,
		.config1 = (uintptr_t)file,
		.config2 = offset,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	struct buffer *b = &p->v[p->n++];

	cr_assert(p->n < EVENTS);
	b->returns = returns;
	b->size = (PAGES + 1) * (size_t)sysconf(_SC_PAGESIZE);
	b->fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	cr_assert(b->fd >= 0, "%s: %s", file, strerror(errno));
	b->head = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	cr_assert(b->head != MAP_FAILED, "%s", strerror(errno));
}

struct entry_probe *entry_probe_new(const char *file, const uint64_t *offsets, size_t n)
{
	struct entry_probe *p = calloc(1, sizeof(*p));

	cr_assert(p && n);
	for (size_t i = 0; i < n; i++)
		for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
			add(p, file, offsets[i], cpu, false);
			add(p, file, offsets[i], cpu, true);
		}
	return p;
}

/* Copies from a ring whose size is a power of two. */
static void copy(const uint8_t *ring, uint64_t size, uint64_t at, void *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = ring[(at + i) & (size - 1)];
}

static size_t take(const struct buffer *b, pid_t pid, struct moment *v, size_t room)
{
	const uint8_t *ring = (const uint8_t *)b->head + b->head->data_offset;
	uint64_t at = b->head->data_tail,
		 end = __atomic_load_n(&b->head->data_head, __ATOMIC_ACQUIRE);
	size_t n = 0;

	while (at < end) {
		struct record r;

		copy(ring, b->head->data_size, at, &r, sizeof(r));
		cr_assert(r.h.size && r.h.type != PERF_RECORD_LOST, "events were lost");
		if (r.h.type == PERF_RECORD_SAMPLE && r.pid == (uint32_t)pid) {
			cr_assert(n < room);
			v[n++] = (struct moment){r.time, r.tid, b->returns};
		}
		at += r.h.size;
	}
	__atomic_store_n(&b->head->data_tail, end, __ATOMIC_RELEASE);
	return n;
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

uint64_t entry_probe_time(struct entry_probe *p, pid_t pid, uint64_t least, size_t *calls)
{
	const size_t room = p->n * PAGES * 4096 / sizeof(struct record);
	struct moment *v = calloc(room, sizeof(*v));
	uint64_t ret = 0;
	size_t n = 0;

	cr_assert(v);
	for (size_t i = 0; i < p->n; i++)
		n += take(&p->v[i], pid, v + n, room - n);
	qsort(v, n, sizeof(*v), by_thread_and_time);
	*calls = 0;
	for (size_t i = 1; i < n; i++) {
		const uint64_t took = v[i].time - v[i - 1].time;

		if (v[i].tid != v[i - 1].tid || v[i - 1].returns || !v[i].returns || took < least)
			continue;
		ret += took;
		(*calls)++;
	}
	free(v);
	return ret;
}

void entry_probe_free(struct entry_probe *p)
{
	for (size_t i = 0; i < p->n; i++) {
		munmap(p->v[i].head, p->v[i].size);
		close(p->v[i].fd);
	}
	free(p);
}
