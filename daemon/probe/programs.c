// SPDX-License-Identifier: BSD-2-Clause
#include "probe/programs.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/column.h"
#include "base/counters.h"
#include "base/wait.h"
#include "probe/bpfmap.h"
#include "probe/counts.h"
#include "probe/kcaps.h"
#include "probe/load.h"
#include "probe/ring.h"
#include "probe/ringmem.h"
#include "probe/sampler.h"
#include "probe/sites.h"
#include "probe/uprobe_multi.h"
#include "pyprof.skel.h"

/* The same values as in bpf/frame.bpf.h. */
#define FRAME_BLOCK 32u
#define FRAME_SPAN  96u

/* The init pid namespace always has this inode: PROC_PID_INIT_INO of linux/proc_ns.h. */
#define INIT_PID_NS 0xeffffffcul

static bool in_block(const struct pyp_layout *l, uint16_t field)
{
	return field >= l->frame_block && field + 8u <= l->frame_block + FRAME_BLOCK &&
	       (field - l->frame_block) % 8 == 0;
}

/* Returns the bytes to read of a frame for code, previous and owner; 0: unsupported layout. */
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

/*
 * Returns the inode of this process's pid namespace; 0: the init namespace, whose numbers the
 * kernel uses.
 */
static uint32_t pid_ns_inode(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == INIT_PID_NS)
		return 0;
	return (uint32_t)st.st_ino;
}

/* The program of the sites. */
static struct bpf_program *site_program(const struct pyprof_bpf *skel, enum mode mode)
{
	return mode == MODE_COUNT ? skel->progs.on_site_count : skel->progs.on_site;
}

int programs_site_fd(const struct pyprof_bpf *skel, enum mode mode)
{
	return bpf_program__fd(site_program(skel, mode));
}

unsigned int programs_kinds(const struct pyprof_bpf *skel, enum mode mode)
{
	const unsigned int counted = 1u << PYP_SITE_ENTER | 1u << PYP_SITE_THROW |
				     1u << PYP_SITE_CODE_FREE | 1u << PYP_SITE_C_ENTER |
				     1u << PYP_SITE_C_INSTANT | 1u << PYP_SITE_GC_START;
	unsigned int kinds = mode == MODE_COUNT ? counted : PROBE_SITES_ALL;

	if (!skel->rodata->builtins)
		kinds &= ~PROBE_SITES_NATIVE;
	return skel->rodata->collections ? kinds : kinds & ~PROBE_SITES_GC;
}

static bool have_methods(const struct pyprof_bpf *skel)
{
	return skel->rodata->builtins || skel->rodata->native_calls.on;
}

/* Samples during a trace identify Python functions only. */
static bool samples_native(const struct probe_opts *o)
{
	return o->builtins && o->sampling.rate && o->mode != MODE_TRACE;
}

/*
 * Prepares a program for a multi-uprobe link. The kernel calls sleepable programs at less cost, some
 * 14 ns per hit; ours never sleeps (see bpf/user.bpf.h). All kernels with such links (6.6) allow
 * sleepable programs to use our maps (6.1).
 */
static int set_multi(struct bpf_program *prog)
{
	int r = bpf_program__set_flags(prog, bpf_program__flags(prog) | BPF_F_SLEEPABLE);

	return r ? r : bpf_program__set_expected_attach_type(prog, UPROBE_MULTI_ATTACH_TYPE);
}

/*
 * Waits of threads whose stacks are walked: at their ends, if the kernel has a tracepoint for that,
 * or PROBE_WALK_AHEAD asks for the other way.
 */
static int choose_waits(struct pyprof_bpf *skel, const struct probe_opts *o,
			struct pyp_sampling *sampling)
{
	bool ahead = o->walks && (secure_getenv(PROBE_WALK_AHEAD) || !kcaps_has_resume());
	int r;

	sampling->walks = o->walks;
	sampling->ahead = ahead;
	r = bpf_program__set_autoload(skel->progs.on_wait, o->walks);
	if (!r)
		r = bpf_program__set_autoload(skel->progs.on_resume, o->walks && !ahead);
	if (!r)
		r = bpf_map__set_autocreate(skel->maps.off_cpu, o->walks && !ahead);
	/* A walk during a context switch may only use preallocated memory. */
	if (!r && ahead)
		r = bpf_map__set_map_flags(skel->maps.codes, 0);
	if (!r && ahead && have_methods(skel))
		r = bpf_map__set_map_flags(skel->maps.methods, 0);
	return r;
}

/*
 * Large blocks are reported, and arenas found, if the kernel has the tracepoints. Otherwise, the
 * programs watch the number of mapped pages instead.
 */
static int choose_memory(struct pyprof_bpf *skel, const struct layout *l)
{
	struct bpf_program *const of_blocks[] = {skel->progs.on_mapping, skel->progs.on_lock,
						 skel->progs.on_unlock};
	const struct pyp_arenas arenas = layout_arenas(l);
	const bool blocks = skel->rodata->memory && kcaps_has_tracepoint("vm_unmapped_area") &&
			    kcaps_has_tracepoint("mmap_lock_start_locking") &&
			    kcaps_has_tracepoint("mmap_lock_released");
	int r = bpf_program__set_autoload(skel->progs.on_rss, skel->rodata->memory);

	skel->rodata->memory_blocks = blocks;
	if (blocks && kcaps_has_tracepoint("page_fault_user"))
		memcpy((void *)&skel->rodata->arena_layout, &arenas, sizeof(arenas));
	if (!r)
		r = bpf_program__set_autoload(skel->progs.on_fault,
					      skel->rodata->arena_layout.arena_bits);
	if (!r)
		r = bpf_map__set_autocreate(skel->maps.arenas, blocks);
	for (size_t i = 0; i < sizeof(of_blocks) / sizeof(of_blocks[0]) && !r; i++)
		r = bpf_program__set_autoload(of_blocks[i], blocks);
	return r;
}

/*
 * The sizes for a program of ordinary size. What does not fit is announced again with each sample.
 * Preallocated, the others take 25 MB per target.
 */
static int shrink_maps(struct pyprof_bpf *skel)
{
	int r = bpf_map__set_max_entries(skel->maps.codes, 8192);

	if (!r)
		r = bpf_map__set_max_entries(skel->maps.threads, 64);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.tstates, 512);
	return r ? r : bpf_map__set_max_entries(skel->maps.process_tree, 1);
}

/* What the daemon loads once for all targets: see ticker.c, arrivals.c. */
static int leave_out_shared(struct pyprof_bpf *skel)
{
	struct bpf_program *const programs[] = {skel->progs.on_tick, skel->progs.on_arrival_exec,
						skel->progs.on_arrival_fork,
						skel->progs.on_arrival_exit};
	struct bpf_map *const maps[] = {skel->maps.tick_targets, skel->maps.tick_programs,
					skel->maps.arrivals, skel->maps.arrivals_watched,
					skel->maps.arrivals_foreign};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(programs) / sizeof(programs[0]); i++)
		r = bpf_program__set_autoload(programs[i], false);
	for (size_t i = 0; !r && i < sizeof(maps) / sizeof(maps[0]); i++)
		r = bpf_map__set_autocreate(maps[i], false);
	return r;
}

/*
 * Selects only the programs, maps and tracepoints that the mode needs, because tracepoints cost
 * time at each switch.
 */
static int choose_programs(struct pyprof_bpf *skel, const struct probe_opts *o,
			   enum probe_mechanism mechanism)
{
	bool counting = o->mode == MODE_COUNT, sampled = o->mode == MODE_SAMPLE;
	bool samples = o->sampling.rate;
	bool beside = samples && o->sampling.when == PYP_SAMPLING_BESIDE;
	/* Stacks of changes of memory are sent from page faults, like samples from interrupts. */
	bool stacks = skel->rodata->memory == PYP_MEMORY_STACKS;
	struct bpf_program *of_sites = sampled ? NULL : site_program(skel, o->mode);
	struct pyp_waiting waiting = layout_waiting(o->layout);
	struct pyp_raising raising = layout_raising(o->layout);
	struct pyp_restart restart = layout_restart(o->layout);
	struct pyp_sampling sampling = sampler_layout(o->layout, &o->sampling);
	int r = choose_waits(skel, o, &sampling);

	memcpy((void *)&skel->rodata->waiting, &waiting, sizeof(waiting));
	memcpy((void *)&skel->rodata->restart, &restart, sizeof(restart));
	memcpy((void *)&skel->rodata->sampling, &sampling, sizeof(sampling));
	memcpy((void *)&skel->rodata->raising, &raising, sizeof(raising));
	skel->rodata->count_remembers = o->plain;
	if (!r)
		r = bpf_program__set_autoload(skel->progs.on_site, o->mode == MODE_TRACE);
	if (!r)
		r = bpf_program__set_autoload(skel->progs.on_site_count, counting);
	if (!r)
		r = bpf_program__set_autoload(skel->progs.on_sample, samples);
	if (!r)
		r = bpf_program__set_autoload(skel->progs.on_switch,
					      o->mode == MODE_TRACE && !o->walks);
	if (!r)
		r = bpf_program__set_autoload(skel->progs.on_migrate,
					      (o->mode == MODE_TRACE || o->walks) &&
						      kcaps_delays_dequeues());
	if (!r)
		r = choose_memory(skel, o->layout);
	if (!r)
		r = leave_out_shared(skel);
	if (!r)
		r = bpf_map__set_autocreate(skel->maps.methods, have_methods(skel));
	if (!r)
		r = bpf_map__set_autocreate(skel->maps.count_state, counting);
	if (!r)
		r = bpf_map__set_autocreate(skel->maps.edges, counting);
	if (!r)
		r = bpf_map__set_autocreate(skel->maps.traps, samples);
	/*
	 * Before 6.1, programs in interrupts may only use preallocated memory (windows need a later
	 * kernel).
	 */
	if (!r && (sampled || beside || stacks))
		r = bpf_map__set_map_flags(skel->maps.codes, 0);
	if (!r && skel->rodata->native_calls.on)
		r = bpf_map__set_map_flags(skel->maps.methods, 0);
	if (!r && sampled)
		r = bpf_map__set_map_flags(skel->maps.threads, 0);
	if (!r && of_sites && mechanism != PROBE_TRACEFS)
		r = set_multi(of_sites);
	if (!r)
		r = bpf_program__set_autoload(skel->progs.on_mark, o->marks);
	if (!r)
		r = bpf_map__set_autocreate(skel->maps.mark_threads, o->marks);
	skel->rodata->mark_records = o->mark_records;
	if (!r && o->marks && mechanism != PROBE_TRACEFS)
		r = set_multi(skel->progs.on_mark);
	if (!r && o->light)
		r = shrink_maps(skel);
	bpf_program__set_autoattach(skel->progs.on_site, false);
	bpf_program__set_autoattach(skel->progs.on_site_count, false);
	bpf_program__set_autoattach(skel->progs.on_sample, false);
	bpf_program__set_autoattach(skel->progs.on_mark, false);
	return r;
}

/* Sets the system calls in which a thread may wait for a descriptor. */
static void set_fd_calls(struct pyprof_bpf *skel)
{
	uint64_t calls[PYP_FD_CALLS / 64] = {0};

	for (int nr = 0; nr < PYP_FD_CALLS; nr++)
		if (wait_by_fd(nr))
			calls[nr / 64] |= UINT64_C(1) << (nr % 64);
	memcpy((void *)&skel->rodata->fd_calls, calls, sizeof(calls));
}

static int set_ring(struct pyprof_bpf *skel, size_t bytes)
{
	struct bpf_map *records = skel->maps.records;
	uint64_t key;
	int r;

	if (getrandom(&key, sizeof(key), 0) != sizeof(key))
		return -errno;
	skel->rodata->ring_size = bytes;
	skel->rodata->ring_mask = ringmem_mask(bytes);
	skel->rodata->ring_key = key;
	r = bpf_map__set_max_entries(records, (uint32_t)ringmem_chunks(bytes));
	return r ? r : bpf_map__set_value_size(records, (uint32_t)ringmem_chunk_size(bytes));
}

static int configure(struct pyprof_bpf *skel, const struct probe_opts *o,
		     enum probe_mechanism mechanism, struct diag *diag)
{
	struct pyprof_bpf__rodata *ro = skel->rodata;
	const struct pyp_native_calls calls = layout_native_calls(o->layout, o->mode == MODE_COUNT);
	int r;

	ro->pid_ns = pid_ns_inode();
	/* Comparing the process costs nothing in the init namespace. */
	ro->by_address = mechanism == PROBE_TRACEFS		   ? PYP_BY_ADDRESS
			 : mechanism == PROBE_MULTI && !ro->pid_ns ? PYP_BY_BOTH
								   : PYP_BY_COOKIE;
	ro->check_tgid = mechanism != PROBE_MULTI || ro->by_address == PYP_BY_BOTH;
	ro->counters = o->counters & ((1u << PYP_COUNTERS) - 1);
	if (o->counters & COUNTERS_MEMORY)
		ro->memory = o->mode == MODE_TRACE ? PYP_MEMORY_EVENTS : PYP_MEMORY_STACKS;
	ro->builtins = o->builtins && o->mode != MODE_SAMPLE;
	ro->collections = o->collections && o->mode != MODE_SAMPLE;
	if (samples_native(o))
		memcpy((void *)&ro->native_calls, &calls, sizeof(calls));
	set_fd_calls(skel);
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
	r = set_ring(skel, o->ring_bytes);
	if (!r)
		r = choose_programs(skel, o, mechanism);
	return r ? diag_errno(diag, -r, "cannot set up the BPF programs") : 0;
}

static int loaded(int r, struct diag *diag)
{
	if (r == -EPERM || r == -EACCES || r == -ENOMEM)
		return diag_errno(diag, -r, "cannot load the BPF programs");
	if (r)
		return diag_set(diag, r, PYP_EXIT_UNTRACEABLE, "PYPROFD_DEBUG=1 shows its reasons",
				"this kernel does not accept the BPF programs (%s)", strerror(-r));
	return 0;
}

/* ---- light instances, which are used again ---- */

/* Loading takes 50 ms of CPU time, and processes come and go: so many wait for another target. */
#define POOL_MAX 16u
/* Until then, an interrupt on another CPU may still use an instance that was detached. */
#define POOL_WAIT_NS 1000000000ull

/* A light instance, with what is compiled into it */
struct pooled {
	struct pooled *next;
	struct pyprof_bpf *skel;
	struct layout layout;
	uint32_t rate;
	size_t ring_bytes;
	bool waits;
	uint64_t since_ns;
};

static struct pooled *pool;

static bool same_bytes(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n) == 0;
}

/* Different padding only costs loading another one. */
static bool fits(const struct pooled *p, const struct probe_opts *o)
{
	return p->waits && clock_monotonic_ns() >= p->since_ns + POOL_WAIT_NS &&
	       p->rate == o->sampling.rate && p->ring_bytes == o->ring_bytes &&
	       same_bytes(&p->layout, o->layout, sizeof(p->layout));
}

/* As after loading. */
static void reset_light(struct pyprof_bpf *skel)
{
	bpfmap_clear(bpf_map__fd(skel->maps.codes));
	bpfmap_clear(bpf_map__fd(skel->maps.threads));
	bpfmap_clear(bpf_map__fd(skel->maps.tstates));
	skel->bss->target_tgid = 0;
	skel->bss->latency_ns = skel->bss->latency_n = 0;
	skel->bss->sample_skip = 0;
	skel->bss->ring_pos.read = skel->bss->ring_pos.written;
	memset(skel->bss->losses, 0, sizeof(skel->bss->losses));
}

static struct pyprof_bpf *pool_take(const struct probe_opts *o)
{
	for (struct pooled *p = pool; o->light && p; p = p->next) {
		if (!fits(p, o))
			continue;
		p->waits = false;
		reset_light(p->skel);
		return p->skel;
	}
	return NULL;
}

/* Without memory, it is not used again. */
static void pool_note(struct pyprof_bpf *skel, const struct probe_opts *o)
{
	struct pooled *p = o->light ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return;
	p->skel = skel;
	memcpy(&p->layout, o->layout, sizeof(p->layout));
	p->rate = o->sampling.rate;
	p->ring_bytes = o->ring_bytes;
	p->next = pool;
	pool = p;
}

void programs_close(struct pyprof_bpf *skel)
{
	struct pooled **at = &pool, *found;
	unsigned int waiting = 0;

	for (const struct pooled *p = pool; p; p = p->next)
		waiting += p->waits;
	while (*at && (*at)->skel != skel)
		at = &(*at)->next;
	found = *at;
	if (found && waiting < POOL_MAX) {
		found->waits = true;
		found->since_ns = clock_monotonic_ns();
		return;
	}
	if (found) {
		*at = found->next;
		free(found);
	}
	pyprof_bpf__destroy(skel);
}

/* Everything up to loading. *ret_loaded: it was taken from the pool. */
static int prepare(const struct probe_opts *o, enum probe_mechanism mechanism,
		   struct pyprof_bpf **ret, bool *ret_loaded, struct diag *diag)
{
	struct pyprof_bpf *skel = pool_take(o);
	int r;

	*ret_loaded = skel != NULL;
	if (!skel) {
		skel = pyprof_bpf__open();
		if (!skel)
			return diag_errno(diag, errno, "cannot open the BPF programs");
		r = configure(skel, o, mechanism, diag);
		if (r) {
			pyprof_bpf__destroy(skel);
			return r;
		}
	}
	*ret = skel;
	return 0;
}

/* r: the result of loading it. */
static int take_loaded(struct pyprof_bpf *skel, int r, const struct probe_opts *o,
		       struct pyprof_bpf **ret, struct diag *diag)
{
	r = loaded(r, diag);
	if (r) {
		pyprof_bpf__destroy(skel);
		return r;
	}
	pool_note(skel, o);
	*ret = skel;
	return 0;
}

int programs_open(const struct probe_opts *o, enum probe_mechanism mechanism,
		  struct pyprof_bpf **ret, struct diag *diag)
{
	struct pyprof_bpf *skel;
	bool is_loaded;
	int r = prepare(o, mechanism, &skel, &is_loaded, diag);

	if (r)
		return r;
	if (!is_loaded)
		return take_loaded(skel, pyprof_bpf__load(skel), o, ret, diag);
	*ret = skel;
	return 0;
}

static int load_skel(void *skel)
{
	return pyprof_bpf__load(skel);
}

static void destroy_skel(void *skel)
{
	pyprof_bpf__destroy(skel);
}

int programs_open_begin(const struct probe_opts *o, enum probe_mechanism mechanism,
			struct programs_opening *ret, struct diag *diag)
{
	struct load_of of = {.load = load_skel, .free = destroy_skel};
	bool is_loaded;
	int r = prepare(o, mechanism, &ret->skel, &is_loaded, diag);

	ret->load = NULL;
	if (r || is_loaded)
		return r;
	of.ctx = ret->skel;
	if (load_begin(&of, &ret->load) == 0)
		return 0;
	/* Without a thread: now. */
	r = pyprof_bpf__load(ret->skel);
	return take_loaded(TAKE_PTR(ret->skel), r, o, &ret->skel, diag);
}

int programs_opened(struct programs_opening *of, const struct probe_opts *o,
		    struct pyprof_bpf **ret, struct diag *diag)
{
	struct pyprof_bpf *skel = TAKE_PTR(of->skel);
	struct load *load = TAKE_PTR(of->load);

	if (load)
		return take_loaded(skel, load_end(load), o, ret, diag);
	*ret = skel;
	return 0;
}

void programs_abandon(struct programs_opening *of)
{
	if (of->load)
		load_abandon(of->load);
	else
		programs_close(of->skel);
	*of = (struct programs_opening){0};
}

/* Selects the programs and maps whose names begin so, and the maps of the programs' variables. */
static int choose_only(struct pyprof_bpf *skel, const char *programs, const char *maps)
{
	struct bpf_program *prog;
	struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_program(prog, skel->obj)
	{
		if (!r)
			r = bpf_program__set_autoload(prog,
						      strncmp(bpf_program__name(prog), programs,
							      strlen(programs)) == 0);
	}
	bpf_object__for_each_map(map, skel->obj)
	{
		bool wanted = bpf_map__is_internal(map) ||
			      strncmp(bpf_map__name(map), maps, strlen(maps)) == 0;

		if (!r)
			r = bpf_map__set_autocreate(map, wanted);
	}
	return r;
}

int programs_open_ring(const struct pyprof_bpf *skel, struct ring **ret, struct diag *diag)
{
	const struct ring_opts opts = {
		.records_fd = bpf_map__fd(skel->maps.records),
		.wakes_fd = bpf_map__fd(skel->maps.wakes),
		.pos = &skel->bss->ring_pos,
		.bytes = skel->rodata->ring_size,
		.key = skel->rodata->ring_key,
	};

	return ring_open(&opts, ret, diag);
}

static int open_only(const char *programs, const char *maps, struct pyprof_bpf **ret)
{
	struct pyprof_bpf *skel = pyprof_bpf__open();
	int r;

	if (!skel)
		return errno ? -errno : -ENOMEM;
	skel->rodata->pid_ns = pid_ns_inode();
	r = choose_only(skel, programs, maps);
	if (!r)
		r = pyprof_bpf__load(skel);
	if (r) {
		pyprof_bpf__destroy(skel);
		return r;
	}
	*ret = skel;
	return 0;
}

int programs_open_tick(struct pyprof_bpf **ret)
{
	return open_only("on_tick", "tick_", ret);
}

int programs_open_arrivals(struct pyprof_bpf **ret)
{
	return open_only("on_arrival_", "arrivals", ret);
}

int programs_set_sites(struct pyprof_bpf *skel, const struct probe_sites *sites)
{
	return probe_sites_table(sites, skel->bss->site_table, &skel->bss->site_factor);
}

void programs_know_sites(struct pyprof_bpf *skel, const struct plan *plan, uint64_t bias,
			 enum mode mode)
{
	const struct probe_sites all = probe_sites_of(plan, bias, programs_kinds(skel, mode));

	if (skel->rodata->by_address == PYP_BY_BOTH && programs_set_sites(skel, &all) < 0)
		memset(skel->bss->site_table, 0, sizeof(skel->bss->site_table));
}

uint64_t programs_memory_columns(const struct pyprof_bpf *skel)
{
	uint64_t columns = skel->rodata->memory ? column_group("memory") : 0;

	if (!skel->rodata->memory_blocks)
		columns &= ~COLUMN_BIT(COLUMN_live);
	if (!skel->rodata->arena_layout.arena_bits)
		columns &= ~COLUMN_BIT(COLUMN_pools);
	return columns;
}

void programs_forget_threads(struct pyprof_bpf *skel)
{
	skel->bss->epoch++;
	skel->bss->woken = 0;
	skel->bss->memory_of = 0;
}

void programs_forget(struct pyprof_bpf *skel, enum mode mode)
{
	bpfmap_clear(bpf_map__fd(skel->maps.codes));
	if (have_methods(skel))
		bpfmap_clear(bpf_map__fd(skel->maps.methods));
	bpfmap_clear(bpf_map__fd(skel->maps.threads));
	bpfmap_clear(bpf_map__fd(skel->maps.process_tree));
	if (mode == MODE_COUNT)
		counts_forget(bpf_map__fd(skel->maps.count_state));
	bpfmap_clear(bpf_map__fd(skel->maps.tstates));
	memset(skel->bss->site_table, 0, sizeof(skel->bss->site_table));
	if (skel->rodata->sampling.walks && !skel->rodata->sampling.ahead)
		bpfmap_clear(bpf_map__fd(skel->maps.off_cpu));
	memset(skel->bss->code_cache, 0, sizeof(skel->bss->code_cache));
	memset(skel->bss->method_cache, 0, sizeof(skel->bss->method_cache));
	memset(skel->bss->native_cache, 0, sizeof(skel->bss->native_cache));
	programs_forget_threads(skel);
}
