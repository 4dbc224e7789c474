// SPDX-License-Identifier: BSD-2-Clause
/* Processes as they come and go: see arrivals.h. */
#include "probe/arrivals.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "probe/programs.h"
#include "pyprof.skel.h"

struct arrivals {
	struct pyprof_bpf *skel;
	struct ring_buffer *ring;
	arrivals_fn fn; /* during arrivals_read() */
	void *ctx;
};

static int on_report(void *ctx, void *data, size_t size)
{
	struct arrivals *a = ctx;

	if (size >= sizeof(struct pyp_arrival) && a->fn)
		a->fn(a->ctx, data);
	return 0;
}

static int attach(struct arrivals *a)
{
	int r = programs_open_arrivals(&a->skel);

	if (r < 0)
		return r;
	a->ring = ring_buffer__new(bpf_map__fd(a->skel->maps.arrivals), on_report, a, NULL);
	if (!a->ring)
		return errno ? -errno : -ENOMEM;
	return pyprof_bpf__attach(a->skel);
}

int arrivals_open(struct arrivals **ret, struct diag *diag)
{
	_cleanup_(arrivals_freep) struct arrivals *a = calloc(1, sizeof(*a));
	int r = a ? attach(a) : -ENOMEM;

	if (r < 0)
		return diag_errno(diag, -r, "cannot watch the processes of this machine");
	*ret = TAKE_PTR(a);
	return 0;
}

void arrivals_free(struct arrivals *a)
{
	if (!a)
		return;
	ring_buffer__free(a->ring);
	pyprof_bpf__destroy(a->skel);
	free(a);
}

int arrivals_fd(const struct arrivals *a)
{
	return ring_buffer__epoll_fd(a->ring);
}

int arrivals_read(struct arrivals *a, arrivals_fn fn, void *ctx)
{
	int r;

	a->fn = fn;
	a->ctx = ctx;
	r = ring_buffer__consume(a->ring);
	a->fn = NULL;
	return r;
}

uint64_t arrivals_lost(const struct arrivals *a)
{
	return __atomic_load_n(&a->skel->bss->arrivals_lost, __ATOMIC_RELAXED);
}

void arrivals_watch(struct arrivals *a, pid_t pid)
{
	const uint32_t key = (uint32_t)pid;
	const uint8_t one = 1;

	(void)bpf_map_update_elem(bpf_map__fd(a->skel->maps.arrivals_watched), &key, &one, BPF_ANY);
}

void arrivals_forget(struct arrivals *a, pid_t pid)
{
	const uint32_t key = (uint32_t)pid;

	(void)bpf_map_delete_elem(bpf_map__fd(a->skel->maps.arrivals_watched), &key);
}

void arrivals_ignore(struct arrivals *a, const struct pyp_arrival_file *file)
{
	const uint8_t one = 1;

	(void)bpf_map_update_elem(bpf_map__fd(a->skel->maps.arrivals_foreign), file, &one, BPF_ANY);
}
