// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes on a target: see probe.h. The life of a probe is open (programs and maps in the kernel,
 * nothing attached), attach (all sites in one go, then the tracepoints, then one flag that makes them
 * all speak at once, so that no half-attached state is ever seen), detach, attach again.
 */
#include "probe/probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/wait.h"
#include "probe/bpfmap.h"
#include "probe/counts.h"
#include "probe/holder.h"
#include "probe/kcaps.h"
#include "probe/ringpos.h"
#include "probe/sampler.h"
#include "probe/sites.h"
#include "probe/uprobe_multi.h"
#include "pyprof.skel.h"
#include "target/deadline.h"
#include "target/target.h"

/* As the BPF side has them: bpf/frame.bpf.h. */
#define FRAME_BLOCK 32u
#define FRAME_SPAN  96u

/* The init pid namespace has this inode everywhere: PROC_PID_INIT_INO of linux/proc_ns.h. */
#define INIT_PID_NS 0xeffffffcul

/* The kernel's own errno for an instruction it cannot probe. */
#define KERNEL_ENOTSUPP 524

/* What keeps the probes on. */
struct attachment {
	int hold; /* see probe/holder.h; -1: none */
	struct sampler *sampler;
};

/* One call of probe_drain. */
struct drain {
	probe_record_fn fn;
	void *ctx;
	size_t budget;
	size_t done;
	uint64_t at, goal; /* positions in the ring; at: after the last record */
	uint64_t until_ns; /* 0: no deadline */
};

struct probe {
	struct pyprof_bpf *skel;
	struct ring_buffer *rb;
	struct ringpos pos;
	struct drain drain;
	const struct plan *plan;
	char *via;
	pid_t pid, tid;
	uint64_t bias;
	enum mode mode;
	enum probe_mechanism mechanism;
	struct attachment on; /* of the target's own */
	/* For windows. */
	bool windows;
	bool releasing;		   /* detaching has begun and is not over */
	struct attachment between; /* the sites that are on between windows as well, and clocks */
	int clocks;		   /* see probe_samples_between */
	int closing;		   /* the last one, while it is detached; -1: none */
};

static int debug_print(enum libbpf_print_level level, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

static int debug_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	if (!secure_getenv("PYPROFD_DEBUG"))
		return 0;
	return vfprintf(stderr, fmt, ap);
}

int probe_check(enum probe_mechanism *ret, struct diag *diag)
{
	enum probe_mechanism found;
	int r;

	libbpf_set_print(debug_print);
	r = kcaps_check(&kcaps_kernel, secure_getenv(KCAPS_WISH), &found, diag);
	if (r == 0 && ret)
		*ret = found;
	return r;
}

const char *probe_mechanism_name(enum probe_mechanism m)
{
	switch (m) {
	case PROBE_MULTI:
		return "multi";
	case PROBE_TRACEFS:
		return "tracefs";
	case PROBE_MULTI_ALL:
		return "multi-all";
	}
	return "";
}

const char *probe_mechanism_text(enum probe_mechanism m)
{
	switch (m) {
	case PROBE_MULTI:
		return "a multi-uprobe link";
	case PROBE_TRACEFS:
		return "a uprobe event in tracefs";
	case PROBE_MULTI_ALL:
		return "a multi-uprobe link that slows every process with this interpreter";
	}
	return "";
}

static bool in_block(const struct pyp_layout *l, uint16_t field)
{
	return field >= l->frame_block && field + 8u <= l->frame_block + FRAME_BLOCK &&
	       (field - l->frame_block) % 8 == 0;
}

/* Bytes to read of a frame to see code, previous and owner; 0: the layout does not allow it. */
static uint32_t frame_span(const struct pyp_layout *l)
{
	uint32_t span = FRAME_BLOCK;

	if (!in_block(l, l->frame_code) || !in_block(l, l->frame_previous))
		return 0;
	if (l->frame_owner == LAYOUT_NONE)
		return span;
	if (l->frame_owner < l->frame_block)
		return 0;
	if (l->frame_owner - l->frame_block + 1u > span)
		span = l->frame_owner - l->frame_block + 1u;
	return span <= FRAME_SPAN ? span : 0;
}

/* Of our pid namespace; 0: it is the init namespace, whose numbers the kernel itself uses. */
static uint32_t pid_ns_inode(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == INIT_PID_NS)
		return 0;
	return (uint32_t)st.st_ino;
}

/* The program of the sites. */
static struct bpf_program *site_program(const struct probe *p)
{
	return p->mode == MODE_COUNT ? p->skel->progs.on_site_count : p->skel->progs.on_site;
}

/* Which sites it takes, a bit for each kind. Counting asks where frames start and code ends. */
static unsigned int kinds_of(const struct probe *p)
{
	const unsigned int counted = 1u << PYP_SITE_ENTER | 1u << PYP_SITE_THROW |
				     1u << PYP_SITE_CODE_FREE | 1u << PYP_SITE_C_ENTER |
				     1u << PYP_SITE_C_INSTANT | 1u << PYP_SITE_GC_START;
	unsigned int kinds = p->mode == MODE_COUNT ? counted : PROBE_SITES_ALL;

	if (!p->skel->rodata->builtins)
		kinds &= ~PROBE_SITES_NATIVE;
	return p->skel->rodata->collections ? kinds : kinds & ~PROBE_SITES_GC;
}

static bool has_methods(const struct probe *p)
{
	return p->skel->rodata->builtins || p->skel->rodata->native_calls.on;
}

/* Beside a trace they say how it spends its time, by Python function. */
static bool samples_native(const struct probe *p, const struct probe_opts *o)
{
	return o->builtins && o->sampling.rate && p->mode != MODE_TRACE;
}

/* Only what the mode needs is loaded: programs, maps, and tracepoints that cost each switch. */
static int choose_programs(struct probe *p, const struct probe_opts *o)
{
	bool counting = p->mode == MODE_COUNT, sampled = p->mode == MODE_SAMPLE;
	bool samples = o->sampling.rate;
	bool beside = samples && o->sampling.when == PYP_SAMPLING_BESIDE;
	struct bpf_program *of_sites = sampled ? NULL : site_program(p);
	struct pyp_waiting waiting = layout_waiting(o->layout);
	struct pyp_restart restart = layout_restart(o->layout, o->sampling.interp_head);
	struct pyp_sampling sampling = sampler_layout(o->layout, &o->sampling);
	int r;

	memcpy((void *)&p->skel->rodata->waiting, &waiting, sizeof(waiting));
	memcpy((void *)&p->skel->rodata->restart, &restart, sizeof(restart));
	memcpy((void *)&p->skel->rodata->sampling, &sampling, sizeof(sampling));
	p->skel->rodata->count_remembers = o->plain;
	r = bpf_program__set_autoload(p->skel->progs.on_site, p->mode == MODE_TRACE);
	if (!r)
		r = bpf_program__set_autoload(p->skel->progs.on_site_count, counting);
	if (!r)
		r = bpf_program__set_autoload(p->skel->progs.on_sample, samples);
	if (!r)
		r = bpf_program__set_autoload(p->skel->progs.on_switch, p->mode == MODE_TRACE);
	if (!r)
		r = bpf_program__set_autoload(p->skel->progs.on_rss, p->skel->rodata->memory);
	if (!r)
		r = bpf_map__set_autocreate(p->skel->maps.methods, has_methods(p));
	if (!r)
		r = bpf_map__set_autocreate(p->skel->maps.count_state, counting);
	if (!r)
		r = bpf_map__set_autocreate(p->skel->maps.edges, counting);
	if (!r)
		r = bpf_map__set_autocreate(p->skel->maps.traps, samples);
	/* Before 6.1, programs in interrupts may only use memory that is there already (windows
	 * need a later kernel). */
	if (!r && (sampled || beside))
		r = bpf_map__set_map_flags(p->skel->maps.codes, 0);
	if (!r && p->skel->rodata->native_calls.on)
		r = bpf_map__set_map_flags(p->skel->maps.methods, 0);
	if (!r && sampled)
		r = bpf_map__set_map_flags(p->skel->maps.threads, 0);
	if (!r && of_sites && p->mechanism != PROBE_TRACEFS)
		r = bpf_program__set_expected_attach_type(of_sites, UPROBE_MULTI_ATTACH_TYPE);
	bpf_program__set_autoattach(p->skel->progs.on_site, false);
	bpf_program__set_autoattach(p->skel->progs.on_site_count, false);
	bpf_program__set_autoattach(p->skel->progs.on_sample, false);
	return r;
}

static void set_fd_calls(struct probe *p)
{
	uint64_t calls[PYP_FD_CALLS / 64] = {0};

	for (int nr = 0; nr < PYP_FD_CALLS; nr++)
		if (wait_by_fd(nr))
			calls[nr / 64] |= UINT64_C(1) << (nr % 64);
	memcpy((void *)&p->skel->rodata->fd_calls, calls, sizeof(calls));
}

static int configure(struct probe *p, const struct probe_opts *o, struct diag *diag)
{
	struct pyprof_bpf__rodata *ro = p->skel->rodata;
	const struct pyp_native_calls calls = layout_native_calls(o->layout, p->mode == MODE_COUNT);
	int r;

	ro->pid_ns = pid_ns_inode();
	ro->check_tgid = p->mechanism != PROBE_MULTI;
	ro->by_address = p->mechanism == PROBE_TRACEFS;
	ro->counters = o->counters & ((1u << PYP_COUNTERS) - 1);
	ro->memory = (o->counters & COUNTERS_MEMORY) != 0;
	ro->builtins = o->builtins && p->mode != MODE_SAMPLE;
	ro->collections = o->collections && p->mode != MODE_SAMPLE;
	if (samples_native(p, o))
		memcpy((void *)&ro->native_calls, &calls, sizeof(calls));
	ro->ring_half = o->ring_bytes / 2;
	set_fd_calls(p);
	memcpy((void *)&ro->layout, &o->layout->bpf, sizeof(ro->layout));
	ro->frame_span = frame_span(&o->layout->bpf);
	if (!ro->frame_span)
		return diag_set(diag, -EINVAL, PYP_EXIT_UNTRACEABLE, NULL,
				"the frame layout of Python %u.%u cannot be read in one block",
				o->layout->major, o->layout->minor);
	if (ro->memory && !kcaps_has_tracepoint("rss_stat"))
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_FAILURE,
				"leave memory out of --counters",
				"this kernel has no tracepoint rss_stat, which --counters memory "
				"needs");
	r = bpf_map__set_max_entries(p->skel->maps.ring, (uint32_t)o->ring_bytes);
	if (!r)
		r = choose_programs(p, o);
	return r ? diag_errno(diag, -r, "cannot set up the BPF programs") : 0;
}

static int load(struct probe *p, struct diag *diag)
{
	int r = pyprof_bpf__load(p->skel);

	if (r == -EPERM || r == -EACCES || r == -ENOMEM)
		return diag_errno(diag, -r, "cannot load the BPF programs");
	if (r)
		return diag_set(diag, r, PYP_EXIT_UNTRACEABLE, "PYPROFD_DEBUG=1 shows its reasons",
				"this kernel does not accept the BPF programs (%s)", strerror(-r));
	return 0;
}

/* So many records are handled between two readings of the clock. */
#define CLOCK_RECORDS 32

/* The position follows from the records' sizes, as none is ever discarded: to read it from the page
 * shared with the kernel costs a tenth of what a record costs. */
static bool drain_is_over(struct drain *d, size_t size)
{
	d->at += ringpos_record(size);
	if (d->done == d->budget || d->at >= d->goal)
		return true;
	return d->until_ns && d->done % CLOCK_RECORDS == 0 && clock_monotonic_ns() >= d->until_ns;
}

/*
 * A negative return is how to stop libbpf: it moves past this record then. It would go on as long as
 * there are records, which a busy target writes as fast as they are read.
 */
static int on_record(void *ctx, void *data, size_t size)
{
	struct probe *p = ctx;

	p->drain.fn(p->drain.ctx, data, size);
	p->drain.done++;
	return drain_is_over(&p->drain, size) ? -EAGAIN : 0;
}

static int open_ring(struct probe *p, struct diag *diag)
{
	p->rb = ring_buffer__new(bpf_map__fd(p->skel->maps.ring), on_record, p, NULL);
	if (!p->rb || ringpos_open(&p->pos, bpf_map__fd(p->skel->maps.ring)) < 0)
		return diag_errno(diag, errno, "cannot map the ring buffer");
	return 0;
}

static const struct attachment not_attached = {.hold = -1};

/* The kernel takes a link's process by its main thread's memory, and that thread has none. */
static int check_without_leader(pid_t pid, enum probe_mechanism *ret, struct diag *diag)
{
	struct diag why = {0};
	int r;

	r = kcaps_check(&kcaps_kernel, probe_mechanism_name(PROBE_TRACEFS), ret, &why);
	if (r == 0 || why.exit == PYP_EXIT_PERMISSION) {
		if (r < 0)
			*diag = why;
		return r;
	}
	return diag_set(
		diag, r, PYP_EXIT_UNTRACEABLE,
		"it needs uprobe events in tracefs, or a main thread that waits for the others",
		"the main thread of process %d has ended, and this kernel cannot trace it then",
		(int)pid);
}

void probe_prepare(void)
{
	(void)holder_start();
}

int probe_open(const struct probe_opts *opts, struct probe **ret, struct diag *diag)
{
	_cleanup_(probe_freep) struct probe *p = NULL;
	enum probe_mechanism mechanism;
	int r;

	r = opts->tid && opts->tid != opts->pid && opts->mode != MODE_SAMPLE
		    ? check_without_leader(opts->pid, &mechanism, diag)
		    : probe_check(&mechanism, diag);
	if (r)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return diag_errno(diag, ENOMEM, "cannot set up probes");
	p->on = p->between = not_attached;
	p->closing = -1;
	p->mode = opts->mode;
	p->clocks = opts->sampling.rate != 0;
	p->mechanism = mechanism;
	p->skel = pyprof_bpf__open();
	if (!p->skel)
		return diag_errno(diag, errno, "cannot open the BPF programs");
	r = opts->mode == MODE_SAMPLE ? 0 : holder_start();
	if (r)
		return diag_errno(diag, -r, "cannot start the process that holds the probes");
	r = configure(p, opts, diag);
	if (!r)
		r = load(p, diag);
	if (!r)
		r = open_ring(p, diag);
	if (r)
		return r;
	if (opts->pid && probe_set_target(p, opts) < 0)
		return diag_errno(diag, ENOMEM, "cannot set up probes");
	*ret = TAKE_PTR(p);
	return 0;
}

int probe_set_target(struct probe *p, const struct probe_opts *opts)
{
	char *copy = strdup(opts->via);

	if (!copy)
		return -ENOMEM;
	free(p->via);
	p->via = copy;
	p->pid = opts->pid;
	p->tid = opts->tid ? opts->tid : opts->pid;
	p->bias = opts->bias;
	p->plan = opts->plan;
	p->skel->bss->target_tgid = (uint32_t)opts->pid;
	if (opts->plan && p->skel->rodata->builtins)
		probe_native_sites(opts->plan, p->skel->bss->native_sites);
	p->skel->bss->native_types = opts->native;
	p->skel->bss->sampling_at = (struct pyp_sampling_at){
		.interp_head = opts->sampling.interp_head,
		.code_type = opts->sampling.code_type,
	};
	memcpy(p->skel->bss->sampling_at.own, opts->sampling.own, sizeof(opts->sampling.own));
	return 0;
}

void probe_free(struct probe *p)
{
	if (!p)
		return;
	probe_detach(p);
	ring_buffer__free(p->rb);
	ringpos_close(&p->pos);
	pyprof_bpf__destroy(p->skel);
	free(p->via);
	free(p);
}

static void forget_threads(struct probe *p)
{
	p->skel->bss->epoch++;
	p->skel->bss->woken = 0;
	p->skel->bss->memory_of = 0;
}

/*
 * While no probe was on, code objects went and others took their addresses, and threads moved on:
 * forget all of them. No program runs at this time, or they all return at once.
 */
static void forget(struct probe *p)
{
	bpfmap_clear(bpf_map__fd(p->skel->maps.codes));
	if (has_methods(p))
		bpfmap_clear(bpf_map__fd(p->skel->maps.methods));
	bpfmap_clear(bpf_map__fd(p->skel->maps.threads));
	bpfmap_clear(bpf_map__fd(p->skel->maps.process_tree));
	if (p->mode == MODE_COUNT)
		counts_forget(bpf_map__fd(p->skel->maps.count_state));
	bpfmap_clear(bpf_map__fd(p->skel->maps.tstates));
	memset(p->skel->bss->code_cache, 0, sizeof(p->skel->bss->code_cache));
	memset(p->skel->bss->method_cache, 0, sizeof(p->skel->bss->method_cache));
	memset(p->skel->bss->native_cache, 0, sizeof(p->skel->bss->native_cache));
	forget_threads(p);
}

/* The path leads through /proc/PID, which ends with the process. */
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
	default:
		return diag_errno(diag, -err, "cannot probe '%s'", p->via);
	}
}

/* Here and not in the holder: to look it up can block for as long as the target is held up in an
 * exec, and has a deadline. */
static int open_file(const struct probe *p)
{
	return target_open_path(p->via, O_PATH);
}

/* That the holder does not answer has nothing to do with the target. */
static int hold(const struct holder_request *r)
{
	int hold = holder_attach(r);

	return hold == -ETIMEDOUT ? -ETIME : hold;
}

static int attach_multi(const struct probe *p, pid_t pid, const struct probe_sites *sites,
			bool silent)
{
	_cleanup_close_ int file = open_file(p);

	if (file < 0)
		return file;
	return hold(&(struct holder_request){
		.prog_fd = bpf_program__fd(site_program(p)),
		.file = file,
		.offsets = sites->offsets,
		.cookies = silent ? NULL : sites->cookies, /* without them a hit means nothing */
		.n = sites->n,
		.pid = p->mechanism == PROBE_MULTI ? pid : 0,
	});
}

static int attach_event(const struct probe *p, const struct probe_sites *sites)
{
	_cleanup_close_ int file = open_file(p);
	int r = file < 0 ? file
			 : probe_sites_table(sites, p->skel->bss->site_table,
					     &p->skel->bss->site_factor);

	if (r < 0)
		return r;
	return hold(&(struct holder_request){
		.event = true,
		.prog_fd = bpf_program__fd(site_program(p)),
		.file = file,
		.offsets = sites->offsets,
		.n = sites->n,
		.pid = p->tid,
	});
}

static int attach_sampler(const struct probe *p, struct attachment *ret)
{
	return sampler_open(bpf_program__fd(p->skel->progs.on_sample), probe_period(p),
			    &ret->sampler);
}

/* Which of a mode's sites are attached to. */
enum sites { SITES_ALL, SITES_CALLS, SITES_CODE_FREE };

static unsigned int kinds_in(const struct probe *p, enum sites which)
{
	unsigned int kinds = kinds_of(p), code_free = 1u << PYP_SITE_CODE_FREE;

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

/* Where interrupts are of probes' time: see sample_is_of_trap in bpf/sample.bpf.c. */
static int fill_traps(const struct probe *p)
{
	struct probe_traps traps;
	int fd = bpf_map__fd(p->skel->maps.traps);

	probe_traps_of(p->plan, p->bias, kinds_of(p), &traps);
	bpfmap_clear(fd);
	for (uint32_t i = 0; i < traps.n; i++)
		if (bpf_map_update_elem(fd, &traps.v[i].address, &traps.v[i].marks, BPF_ANY) < 0)
			return -errno;
	return 0;
}

static bool samples_beside(const struct probe *p)
{
	return p->skel->rodata->sampling.when == PYP_SAMPLING_BESIDE;
}

/* Clocks beside probes are not worth a failed attach: see probe_samples. */
static void attach_beside(struct probe *p, struct attachment *a)
{
	int r = fill_traps(p);

	if (r == 0)
		r = attach_sampler(p, a);
	p->clocks = r < 0 ? r : 1;
}

static void detach_sites(struct attachment *a)
{
	holder_release(&a->hold);
	sampler_free(a->sampler);
	*a = not_attached;
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

/* Everything but the flag that makes them speak. */
static int put_on(struct probe *p, enum sites which, struct attachment *ret, struct diag *diag)
{
	_cleanup_(detach_sites) struct attachment a = not_attached;
	int r;

	if (probe_attached(p))
		return is_on_already(diag);
	forget(p);
	r = p->mode == MODE_SAMPLE ? attach_sampler(p, &a) : attach_sites(p, which, &a);
	if (r < 0 && p->mode == MODE_SAMPLE)
		return diag_errno(diag, -r, "cannot set the sampling clocks");
	if (r < 0)
		return attach_failed(p, r, diag);
	if (p->clocks && samples_beside(p))
		attach_beside(p, &a);
	r = attach_tracepoints(p, diag);
	if (r)
		return r;
	*ret = a;
	a = not_attached;
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
	/* an event's hits are told apart by their addresses, which are others now */
	if (p->mechanism == PROBE_TRACEFS)
		return -ENOTSUP;
	forget(p);
	if (p->clocks > 0 && samples_beside(p) && fill_traps(p) < 0)
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

/* At the same time: the kernel waits 25 to 50 ms for each. */
static void release_begin(struct probe *p)
{
	set_active(p, PYP_ACTIVE_OFF);
	if (p->on.hold >= 0)
		holder_release_begin(p->on.hold);
	if (p->between.hold >= 0)
		holder_release_begin(p->between.hold);
}

void probe_detach(struct probe *p)
{
	if (!probe_attached(p))
		return;
	release_begin(p);
	detach_sites(&p->on);
	holder_release(&p->closing);
	detach_sites(&p->between);
	p->windows = false;
	p->releasing = false;
	pyprof_bpf__detach(p->skel);
}

bool probe_detach_until(struct probe *p, uint64_t until_ns)
{
	const int holds[] = {p->on.hold, p->between.hold, p->closing};

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
	file = open_file(p);
	if (file < 0)
		return file;
	sites = probe_sites_of(p->plan, p->bias, kinds_of(p));
	return holder_find_tracers(
		&(struct tracers_of){.pid = p->pid, .offsets = sites.offsets, .n = sites.n}, file,
		ret);
}

int probe_tracers_of(pid_t pid, const char *via, const struct plan *plan, struct tracers *ret)
{
	const struct probe_sites sites = probe_sites_of(plan, 0, PROBE_SITES_PYTHON);
	const struct tracers_of of = {pid, via, sites.offsets, sites.n};

	return tracers_find(&of, ret);
}

bool probe_lost(const struct probe *p)
{
	return (p->on.hold >= 0 && holder_lost(p->on.hold)) ||
	       (p->between.hold >= 0 && holder_lost(p->between.hold));
}

bool probe_attached(const struct probe *p)
{
	return p->windows || p->on.hold >= 0 || p->on.sampler;
}

int probe_attach_windows(struct probe *p, struct diag *diag)
{
	int r;

	if (p->mechanism == PROBE_TRACEFS)
		return diag_set(diag, -ENOTSUP, PYP_EXIT_UNTRACEABLE,
				"without --max-overhead it can be traced",
				"this kernel cannot open and close windows fast enough: no "
				"multi-uprobe links");
	r = put_on(p, SITES_CODE_FREE, &p->between, diag);
	if (r)
		return r;
	r = p->clocks ? attach_sampler(p, &p->between) : 0;
	p->clocks = r < 0 ? r : p->clocks != 0;
	p->windows = true;
	set_active(p, PYP_ACTIVE_BETWEEN);
	return 0;
}

/* From one to the other, unless an exec has switched it off. */
static bool change_active(struct probe *p, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&p->skel->bss->active, &from, to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

int probe_window_open(struct probe *p, uint64_t *ret_ts, struct diag *diag)
{
	_cleanup_(detach_sites) struct attachment on = not_attached;
	int r;

	if (p->on.hold >= 0 || !probe_window_ready(p))
		return is_on_already(diag);
	r = attach_sites(p, SITES_CALLS, &on);
	if (r < 0)
		return attach_failed(p, r, diag);
	/*
	 * A hit that was under way when the last one was closed may have made its thread known
	 * since, and its stack would not be sent. Now that link has gone, and so have its hits.
	 */
	forget_threads(p);
	*ret_ts = clock_monotonic_ns();
	if (!change_active(p, PYP_ACTIVE_BETWEEN, PYP_ACTIVE_ON))
		return attach_failed(p, -ESRCH, diag);
	p->on = on;
	on = not_attached;
	return 0;
}

void probe_window_silence(struct probe *p, uint64_t *ret_ts)
{
	change_active(p, PYP_ACTIVE_ON, PYP_ACTIVE_BETWEEN);
	*ret_ts = clock_monotonic_ns();
}

void probe_window_close(struct probe *p)
{
	/* Nor their switches, from now on. */
	forget_threads(p);
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

void probe_set_gils(struct probe *p, const struct pyp_gil_range v[PYP_GIL_RANGES])
{
	memcpy(p->skel->bss->gil_ranges, v, sizeof(p->skel->bss->gil_ranges));
}

struct probe_gauge probe_gauge(const struct probe *p)
{
	return (struct probe_gauge){.ns = p->skel->bss->gauge_ns, .n = p->skel->bss->gauge_n};
}

enum probe_mechanism probe_mechanism(const struct probe *p)
{
	return p->mechanism;
}

/*
 * A forked child keeps the breakpoints, and nobody's link wants them there. Closing any link on
 * the same offsets makes the kernel look at every process again and remove what is not wanted. A
 * link for all processes wants them: its hits are dropped by the program. An event's need no
 * sweep: whoever is not meant loses a breakpoint when it is hit.
 */
int probe_sweep_child(struct probe *p, pid_t child, struct diag *diag)
{
	struct probe_sites sites;
	int link;

	if (!probe_attached(p) || p->mechanism != PROBE_MULTI || p->mode == MODE_SAMPLE)
		return 0;
	sites = probe_sites_of(p->plan, p->bias, kinds_of(p));
	link = attach_multi(p, child, &sites, true);
	if (link < 0 && link != -ESRCH)
		return attach_failed(p, link, diag);
	holder_release(&link);
	return 0;
}

static int drain(struct probe *p, const struct drain *how)
{
	int r = 0;

	p->drain = *how;
	p->drain.goal = ringpos_written(&p->pos);
	p->drain.at = ringpos_read(&p->pos);
	if (p->drain.at < p->drain.goal)
		r = ring_buffer__consume(p->rb);
	__atomic_store_n(&p->skel->bss->woken, 0, __ATOMIC_RELAXED);
	return r < 0 && r != -EAGAIN ? r : (int)p->drain.done;
}

int probe_drain(struct probe *p, size_t budget, probe_record_fn fn, void *ctx)
{
	return drain(p, &(struct drain){.fn = fn, .ctx = ctx, .budget = budget});
}

int probe_drain_until(struct probe *p, uint64_t until_ns, probe_record_fn fn, void *ctx)
{
	return drain(p, &(struct drain){.fn = fn, .ctx = ctx, .until_ns = until_ns});
}

uint64_t probe_written(const struct probe *p)
{
	return ringpos_written(&p->pos);
}

uint64_t probe_read(const struct probe *p)
{
	return ringpos_read(&p->pos);
}

int probe_ring_fd(const struct probe *p)
{
	return bpf_map__fd(p->skel->maps.ring);
}

void probe_losses(const struct probe *p, uint64_t out[PYP_LOSS_MAX])
{
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		out[i] = __atomic_load_n(&p->skel->bss->losses[i], __ATOMIC_RELAXED);
}

uint64_t probe_period(const struct probe *p)
{
	return p->skel->rodata->sampling.period;
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
