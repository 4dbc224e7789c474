// SPDX-License-Identifier: BSD-2-Clause
/* Marks of a probe: see probe.h, plan/marks.c and bpf/mark.bpf.c. */
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "probe/bpfmap.h"
#include "probe/holder.h"
#include "probe/probe_priv.h"
#include "pyprof/bpf_ring.h"
#include "pyprof.skel.h"

/* Attaches p->mark_offsets in a process. cookies: NULL: hits are ignored. */
static int hold_marks(const struct probe *p, const uint64_t *cookies, pid_t pid)
{
	_cleanup_close_ int file = probe_open_file(p);

	if (file < 0)
		return file;
	return probe_hold(&(struct holder_request){
		.prog_fd = bpf_program__fd(p->skel->progs.on_mark),
		.file = file,
		.offsets = p->mark_offsets,
		.cookies = cookies,
		.n = p->nmarks,
		.pid = pid,
	});
}

int probe_marks_attach(struct probe *p, const uint8_t *which, uint32_t n)
{
	uint64_t cookies[PYP_MARKS];
	int r;

	if (p->mechanism != PROBE_MULTI || !bpf_program__autoload(p->skel->progs.on_mark))
		return -EOPNOTSUPP;
	if (p->marks >= 0)
		return -EBUSY;
	if (!n || n > PYP_MARKS)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		p->mark_numbers[i] = which[i];
		p->mark_offsets[i] = p->plan->marks[which[i]].offset;
		cookies[i] = which[i] + 1u;
	}
	p->nmarks = n;
	r = hold_marks(p, cookies, p->pid);
	if (r < 0)
		return r;
	p->marks = r;
	r = probe_fill_traps(p);
	if (r < 0) {
		probe_marks_detach(p);
		return r;
	}
	/* If it is attached, an exec may have disabled everything. */
	if (!probe_attached(p))
		p->skel->bss->active = PYP_ACTIVE_BETWEEN;
	p->marks_releasing = false;
	return 0;
}

int probe_marks_sweep(struct probe *p, pid_t child)
{
	int link;

	if (p->marks < 0)
		return 0;
	link = hold_marks(p, NULL, child);
	if (link < 0)
		return link;
	holder_release(&link);
	return 0;
}

void probe_marks_release(struct probe *p)
{
	if (p->marks < 0 || p->marks_releasing)
		return;
	p->marks_releasing = true;
	holder_release_begin(p->marks);
}

bool probe_marks_released(struct probe *p)
{
	if (p->marks >= 0 && !(p->marks_releasing && holder_released(p->marks)))
		return false;
	probe_marks_detach(p);
	return true;
}

void probe_marks_detach(struct probe *p)
{
	if (p->marks < 0)
		return;
	holder_release(&p->marks);
	(void)probe_fill_traps(p); /* fewer than before */
}

void probe_marks_read(const struct probe *p, uint64_t ret[PYP_MARKS])
{
	memcpy(ret, p->skel->bss->mark_hits, sizeof(p->skel->bss->mark_hits));
}

void probe_marks_threads(const struct probe *p, probe_marks_fn fn, void *ctx)
{
	const int fd = bpf_map__fd(p->skel->maps.mark_threads);
	uint32_t tid, *last = NULL;
	uint64_t marks;

	/* If a key is removed meanwhile, the kernel begins again. */
	for (uint32_t i = 0; i < PYP_MARK_THREADS && bpf_map_get_next_key(fd, last, &tid) == 0;
	     i++) {
		if (bpf_map_lookup_elem(fd, &tid, &marks) == 0)
			fn(ctx, tid, marks);
		last = &tid;
	}
}

void probe_marks_forget_threads(struct probe *p)
{
	bpfmap_clear(bpf_map__fd(p->skel->maps.mark_threads));
}
