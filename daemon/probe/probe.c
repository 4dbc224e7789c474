// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes on a target: see probe.h. The states of a probe: open (programs and maps in the kernel,
 * nothing attached), attached (all sites at once, then the tracepoints, then one flag that enables
 * all of them, so that no partially attached state is visible), detached, attached again.
 */
#include "probe/probe_priv.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/column.h"
#include "probe/bpfmap.h"
#include "probe/counts.h"
#include "probe/holder.h"
#include "probe/kcaps.h"
#include "probe/programs.h"
#include "probe/ring.h"
#include "probe/sites.h"
#include "probe/ticker.h"
#include "pyprof.skel.h"
#include "target/deadline.h"
#include "target/target.h"

/* The kernel's internal errno for an instruction that it cannot probe. */
#define KERNEL_ENOTSUPP 524

/* The path leads through /proc/PID, which disappears with the process. */
static bool is_gone(const struct probe *p, int err)
{
	return err == -ENOENT && kill(p->pid, 0) < 0 && errno == ESRCH;
}

static int attach_failed(const struct probe *p, int err, struct diag *diag)
{
	if (err == -ETIMEDOUT)
		return deadline_diag(diag, err, p->pid);
	switch (is_gone(p, err) ? ESRCH : -err) {
	case ESRCH:
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "check the pid", "no process %d",
				(int)p->pid);
	case KERNEL_ENOTSUPP:
		return diag_set(diag, -ENOTSUP, PYP_EXIT_UNTRACEABLE,
				"pyprofctl doctor shows the planned instructions",
				"the kernel cannot probe one of the instructions in '%s'", p->via);
	}
	if (p->mechanism == PROBE_TRACEFS)
		return kcaps_no_event(&kcaps_kernel, err, "attach the probes", diag);
	return diag_errno(diag, -err, "cannot probe '%s'", p->via);
}

/*
 * Opened here rather than in the holder, because the lookup can block while the target is stuck in
 * an exec and therefore needs a deadline.
 */
int probe_open_file(const struct probe *p)
{
	return target_open_path(p->via, O_PATH);
}

/* A missing answer of the holder is not an error of the target. */
int probe_hold(const struct holder_request *r)
{
	int hold = holder_attach(r);

	return hold == -ETIMEDOUT ? -ETIME : hold;
}

static int attach_multi(const struct probe *p, pid_t pid, const struct probe_sites *sites,
			bool ignored)
{
	_cleanup_close_ int file = probe_open_file(p);

	if (file < 0)
		return file;
	return probe_hold(&(struct holder_request){
		.prog_fd = programs_site_fd(p->skel, p->mode),
		.file = file,
		.offsets = sites->offsets,
		.cookies = ignored ? NULL : sites->cookies, /* without cookies, hits are ignored */
		.n = sites->n,
		.pid = p->mechanism == PROBE_MULTI ? pid : 0,
	});
}

static int attach_event(const struct probe *p, const struct probe_sites *sites)
{
	_cleanup_close_ int file = probe_open_file(p);
	int r = file < 0 ? file : programs_set_sites(p->skel, sites);

	if (r < 0)
		return r;
	return probe_hold(&(struct holder_request){
		.event = true,
		.prog_fd = programs_site_fd(p->skel, p->mode),
		.file = file,
		.offsets = sites->offsets,
		.n = sites->n,
		.pid = p->tid,
	});
}

static int attach_sampler(const struct probe *p, struct attachment *ret)
{
	const int prog = bpf_program__fd(p->skel->progs.on_sample);

	return p->momentary ? ticker_open_own(prog, probe_period(p), &ret->ticker)
			    : ticker_open(prog, p->pid, probe_period(p), &ret->ticker);
}

/* Which of the mode's sites to attach. */
enum sites { SITES_ALL, SITES_CALLS, SITES_CODE_FREE };

static unsigned int kinds_in(const struct probe *p, enum sites which)
{
	unsigned int kinds = programs_kinds(p->skel, p->mode), code_free = 1u << PYP_SITE_CODE_FREE;

	return which == SITES_ALL     ? kinds
	       : which == SITES_CALLS ? kinds & ~code_free
				      : kinds & code_free;
}

static int attach_sites(const struct probe *p, enum sites which, struct attachment *ret)
{
	const struct probe_sites sites = probe_sites_of(p->plan, p->bias, kinds_in(p, which));
	int r;

	if (!sites.n)
		return -ENOENT;
	r = p->mechanism == PROBE_TRACEFS ? attach_event(p, &sites)
					  : attach_multi(p, p->pid, &sites, false);
	if (r < 0)
		return r;
	ret->hold = r;
	return 0;
}

static bool samples_beside(const struct probe *p)
{
	return p->skel->rodata->sampling.when == PYP_SAMPLING_BESIDE;
}

int probe_fill_traps(const struct probe *p)
{
	unsigned int kinds = samples_beside(p) ? programs_kinds(p->skel, p->mode) : 0;
	struct probe_traps traps;
	int fd = bpf_map__fd(p->skel->maps.traps);

	if (!bpf_program__autoload(p->skel->progs.on_sample))
		return 0;
	probe_traps_of(p->plan, p->bias, kinds, p->mark_numbers, p->marks < 0 ? 0 : p->nmarks,
		       &traps);
	bpfmap_clear(fd);
	for (uint32_t i = 0; i < traps.n; i++)
		if (bpf_map_update_elem(fd, &traps.v[i].address, &traps.v[i].flags, BPF_ANY) < 0)
			return -errno;
	return 0;
}

/* If the timers fail, the attach succeeds without samples: see probe_samples. */
static void attach_beside(struct probe *p, struct attachment *a)
{
	int r = probe_fill_traps(p);

	if (r == 0)
		r = attach_sampler(p, a);
	p->clocks = r < 0 ? r : 1;
}

static void detach_sites(struct attachment *a)
{
	holder_release(&a->hold);
	ticker_free(a->ticker);
	*a = PROBE_NOT_ATTACHED;
}

static void set_active(struct probe *p, uint32_t on)
{
	__atomic_store_n(&p->skel->bss->active, on, __ATOMIC_SEQ_CST);
}

static int attach_tracepoints(struct probe *p, struct diag *diag)
{
	int r = pyprof_bpf__attach(p->skel);

	if (r) {
		pyprof_bpf__detach(p->skel);
		return diag_errno(diag, -r, "cannot attach to the scheduler's tracepoints");
	}
	return 0;
}

static int is_on_already(struct diag *diag)
{
	return diag_set(diag, -EALREADY, PYP_EXIT_BUSY, NULL, "probes are on already");
}

/* Attaches everything without setting the flag that enables recording. */
static int put_on(struct probe *p, enum sites which, struct attachment *ret, struct diag *diag)
{
	_cleanup_(detach_sites) struct attachment a = PROBE_NOT_ATTACHED;
	int r;

	if (probe_attached(p))
		return is_on_already(diag);
	/* Clearing what is empty would fill pages. */
	if (p->used)
		programs_forget(p->skel, p->mode);
	else
		programs_forget_threads(p->skel);
	p->used = true;
	if (p->mode != MODE_SAMPLE)
		programs_know_sites(p->skel, p->plan, p->bias, p->mode);
	r = p->mode == MODE_SAMPLE ? attach_sampler(p, &a) : attach_sites(p, which, &a);
	if (r < 0 && p->mode == MODE_SAMPLE)
		return kcaps_no_event(&kcaps_kernel, r, "set the sampling timers", diag);
	if (r < 0)
		return attach_failed(p, r, diag);
	if (p->clocks && samples_beside(p))
		attach_beside(p, &a);
	r = attach_tracepoints(p, diag);
	if (r)
		return r;
	*ret = a;
	a = PROBE_NOT_ATTACHED;
	return 0;
}

int probe_attach(struct probe *p, uint64_t *ret_ts, struct diag *diag)
{
	int r = put_on(p, SITES_ALL, &p->on, diag);

	if (r)
		return r;
	*ret_ts = clock_monotonic_ns();
	set_active(p, PYP_ACTIVE_ON);
	return 0;
}

int probe_rearm(struct probe *p, uint64_t *ret_ts)
{
	if (!probe_attached(p))
		return -ENOTCONN;
	/* an event's hits are identified by address, and the addresses have changed */
	if (p->mechanism == PROBE_TRACEFS)
		return -ENOTSUP;
	programs_forget(p->skel, p->mode);
	if (p->clocks > 0 && samples_beside(p) && probe_fill_traps(p) < 0)
		p->clocks = -ENOMEM;
	*ret_ts = clock_monotonic_ns();
	set_active(p, PYP_ACTIVE_ON);
	return 0;
}

void probe_follow(struct probe *p, bool on)
{
	__atomic_store_n(&p->skel->bss->follow, on, __ATOMIC_SEQ_CST);
	if (!on)
		bpfmap_clear(bpf_map__fd(p->skel->maps.process_tree));
}

void probe_follow_forget(struct probe *p, pid_t descendant)
{
	uint32_t tgid = (uint32_t)descendant;

	bpf_map_delete_elem(bpf_map__fd(p->skel->maps.process_tree), &tgid);
}

void probe_silence(struct probe *p)
{
	set_active(p, PYP_ACTIVE_OFF);
}

/* Releases both at the same time, because the kernel waits 25 to 50 ms for each. */
static void release_begin(struct probe *p)
{
	set_active(p, PYP_ACTIVE_OFF);
	if (p->on.hold >= 0)
		holder_release_begin(p->on.hold);
	if (p->between.hold >= 0)
		holder_release_begin(p->between.hold);
	probe_marks_release(p);
}

void probe_detach(struct probe *p)
{
	if (!probe_attached(p))
		return;
	release_begin(p);
	detach_sites(&p->on);
	holder_release(&p->closing);
	probe_marks_detach(p);
	detach_sites(&p->between);
	p->windows = false;
	p->releasing = false;
	pyprof_bpf__detach(p->skel);
}

bool probe_detach_until(struct probe *p, uint64_t until_ns)
{
	const int holds[] = {p->on.hold, p->between.hold, p->closing, p->marks};

	if (!probe_attached(p))
		return true;
	if (!p->releasing)
		release_begin(p);
	p->releasing = true;
	for (size_t i = 0; i < sizeof(holds) / sizeof(*holds); i++)
		if (holds[i] >= 0 && !holder_released_until(holds[i], until_ns))
			return false;
	probe_detach(p);
	return true;
}

int probe_tracers(const struct probe *p, struct tracers *ret)
{
	_cleanup_close_ int file = -1;
	struct probe_sites sites;

	*ret = (struct tracers){0};
	if (!p->plan)
		return 0;
	file = probe_open_file(p);
	if (file < 0)
		return file;
	sites = probe_sites_of(p->plan, p->bias, programs_kinds(p->skel, p->mode));
	return holder_find_tracers(
		&(struct tracers_of){.pid = p->pid, .offsets = sites.offsets, .n = sites.n}, file,
		ret);
}

bool probe_lost(const struct probe *p)
{
	return (p->on.hold >= 0 && holder_lost(p->on.hold)) ||
	       (p->between.hold >= 0 && holder_lost(p->between.hold));
}

void probe_set_skip(struct probe *p, uint32_t one_in)
{
	p->skel->bss->sample_skip = one_in;
}

bool probe_attached(const struct probe *p)
{
	return p->windows || p->on.hold >= 0 || p->on.ticker;
}

int probe_attach_windows(struct probe *p, struct diag *diag)
{
	int r;

	if (p->mechanism == PROBE_TRACEFS)
		return diag_set(diag, -ENOTSUP, PYP_EXIT_UNTRACEABLE,
				"with --exact or --mode sample it can be observed",
				"this kernel cannot open and close windows fast enough: no "
				"multi-uprobe links");
	r = put_on(p, SITES_CODE_FREE, &p->between, diag);
	if (r)
		return r;
	p->windows = true;
	set_active(p, PYP_ACTIVE_BETWEEN);
	return 0;
}

/* Changes the flag from one value to another, unless an exec has cleared it. */
static bool change_active(struct probe *p, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&p->skel->bss->active, &from, to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

int probe_window_open(struct probe *p, uint64_t *ret_ts, struct diag *diag)
{
	_cleanup_(detach_sites) struct attachment on = PROBE_NOT_ATTACHED;
	int r;

	if (p->on.hold >= 0 || !probe_window_ready(p))
		return is_on_already(diag);
	r = attach_sites(p, SITES_CALLS, &on);
	if (r < 0)
		return attach_failed(p, r, diag);
	/*
	 * A hit in progress when the last window was closed may have added its thread since; the
	 * thread's stack would not be sent. That link is released now, and no hit is in progress.
	 */
	programs_forget_threads(p->skel);
	*ret_ts = clock_monotonic_ns();
	if (!change_active(p, PYP_ACTIVE_BETWEEN, PYP_ACTIVE_ON))
		return attach_failed(p, -ESRCH, diag);
	p->on = on;
	on = PROBE_NOT_ATTACHED;
	return 0;
}

void probe_window_silence(struct probe *p, uint64_t *ret_ts)
{
	change_active(p, PYP_ACTIVE_ON, PYP_ACTIVE_BETWEEN);
	*ret_ts = clock_monotonic_ns();
}

void probe_window_close(struct probe *p)
{
	/* Also stops context switches from now on. */
	programs_forget_threads(p->skel);
	if (p->on.hold >= 0) {
		p->closing = TAKE_FD(p->on.hold);
		holder_release_begin(p->closing);
	}
}

bool probe_window_ready(struct probe *p)
{
	if (p->closing >= 0 && !holder_released(p->closing))
		return false;
	holder_release(&p->closing);
	return true;
}

int probe_samples(const struct probe *p)
{
	return p->clocks;
}

struct pyp_trap_samples probe_trap_samples(const struct probe *p)
{
	return p->skel->bss->trap_samples;
}

void probe_report_raised(struct probe *p, bool on)
{
	__atomic_store_n(&p->skel->bss->report_raised, on, __ATOMIC_SEQ_CST);
}

void probe_set_gils(struct probe *p, const struct pyp_gil_range v[PYP_GIL_RANGES])
{
	memcpy(p->skel->bss->gil_ranges, v, sizeof(p->skel->bss->gil_ranges));
}

struct probe_latency probe_latency(const struct probe *p)
{
	return (struct probe_latency){.ns = p->skel->bss->latency_ns, .n = p->skel->bss->latency_n};
}

enum probe_mechanism probe_mechanism(const struct probe *p)
{
	return p->mechanism;
}

/*
 * A forked child keeps the breakpoints, although no link covers it. Closing any link at the same
 * offsets makes the kernel check every process and remove unneeded breakpoints. A link for all
 * processes keeps them, and the program ignores its hits. tracefs uprobes need no sweep: a
 * breakpoint is removed when a process outside the filter hits it.
 */
int probe_sweep_child(struct probe *p, pid_t child, struct diag *diag)
{
	struct probe_sites sites;
	int link, r;

	if (!probe_attached(p) || p->mechanism != PROBE_MULTI || p->mode == MODE_SAMPLE)
		return 0;
	sites = probe_sites_of(p->plan, p->bias, programs_kinds(p->skel, p->mode));
	link = attach_multi(p, child, &sites, true);
	r = probe_marks_sweep(p, child);
	if (link < 0 && link != -ESRCH)
		return attach_failed(p, link, diag);
	holder_release(&link);
	return r < 0 && r != -ESRCH ? attach_failed(p, r, diag) : 0;
}

static int drain(struct probe *p, const struct ring_drain *how)
{
	int r = ring_drain(p->ring, how);

	__atomic_store_n(&p->skel->bss->woken, 0, __ATOMIC_RELAXED);
	return r;
}

int probe_drain(struct probe *p, size_t budget, probe_record_fn fn, void *ctx)
{
	return drain(p, &(struct ring_drain){.fn = fn, .ctx = ctx, .budget = budget});
}

int probe_drain_until(struct probe *p, uint64_t until_ns, probe_record_fn fn, void *ctx)
{
	return drain(p, &(struct ring_drain){.fn = fn, .ctx = ctx, .until_ns = until_ns});
}

uint64_t probe_written(const struct probe *p)
{
	return ring_written(p->ring);
}

uint64_t probe_read(const struct probe *p)
{
	return ring_read(p->ring);
}

int probe_ring_fd(const struct probe *p)
{
	return bpf_map__fd(p->skel->maps.wakes);
}

void probe_losses(const struct probe *p, uint64_t out[PYP_LOSS_MAX])
{
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		out[i] = __atomic_load_n(&p->skel->bss->losses[i], __ATOMIC_RELAXED);
}

bool probe_code_lives(const struct probe *p, uint64_t code, uint64_t announced_ns)
{
	uint64_t value;

	return bpf_map_lookup_elem(bpf_map__fd(p->skel->maps.codes), &code, &value) == 0 &&
	       value >> PYP_CODE_STAMP_SHIFT == PYP_CODE_STAMP(announced_ns);
}

uint64_t probe_columns(const struct probe *p)
{
	return COLUMN_COUNTERS(p->skel->rodata->counters) | programs_memory_columns(p->skel);
}

uint64_t probe_period(const struct probe *p)
{
	return p->skel->rodata->sampling.period;
}

bool probe_is_sampling(const struct probe *p)
{
	return p->on.ticker || p->between.ticker;
}

void probe_jitter(struct probe *p, uint64_t now_ns)
{
	ticker_jitter(p->on.ticker, now_ns);
	ticker_jitter(p->between.ticker, now_ns);
}

int probe_counts(const struct probe *p, struct probe_count **ret, size_t *ret_n)
{
	return counts_read(bpf_map__fd(p->skel->maps.edges), ret, ret_n);
}

void probe_counts_drop(const struct probe *p, const struct pyp_edge *edge)
{
	bpf_map_delete_elem(bpf_map__fd(p->skel->maps.edges), edge);
}

void probe_end(void)
{
	holder_end();
}
