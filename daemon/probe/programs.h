/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One instance of the BPF programs (private to probe/): selected by the target's mode, configured
 * and loaded.
 */
#ifndef PYPROF_PROBE_PROGRAMS_H
#define PYPROF_PROBE_PROGRAMS_H

#include <stdbool.h>

#include "base/diag.h"
#include "probe/mechanism.h"
#include "probe/opts.h"
#include "pyprof/bpf_ring.h" /* for the skeleton */

struct load;
struct plan;
struct probe_sites;
struct ring;
struct pyprof_bpf; /* the skeleton, pyprof.skel.h */

/*
 * Loads programs and maps into the kernel without attaching. The caller frees *ret with
 * programs_close, which lets a light instance wait for the next target. Returns 0, or an error that
 * names the missing capability (exit code 4) or kernel feature (exit code 5).
 */
int programs_open(const struct probe_opts *o, enum probe_mechanism mechanism,
		  struct pyprof_bpf **ret, struct diag *diag);
void programs_close(struct pyprof_bpf *skel); /* NULL is accepted */

/*
 * The same in two parts. begin loads on a thread if it has to (load: not NULL), see load.h; opened
 * waits for it; abandon frees it instead. o: the same for both, with what it refers to.
 */
struct programs_opening {
	struct pyprof_bpf *skel;
	struct load *load;
};
int programs_open_begin(const struct probe_opts *o, enum probe_mechanism mechanism,
			struct programs_opening *ret, struct diag *diag);
int programs_opened(struct programs_opening *of, const struct probe_opts *o,
		    struct pyprof_bpf **ret, struct diag *diag);
void programs_abandon(struct programs_opening *of);

/*
 * Loads only on_tick, of the timers that targets share (probe/ticker.h). The caller frees *ret with
 * pyprof_bpf__destroy. Returns 0 or a negative errno.
 */
int programs_open_tick(struct pyprof_bpf **ret);
/* The same with the programs of probe/arrivals.h. */
int programs_open_arrivals(struct pyprof_bpf **ret);
/* Opens the ring that they write. The caller frees it before the programs. See ring_open(). */
int programs_open_ring(const struct pyprof_bpf *skel, struct ring **ret, struct diag *diag);
/* Returns the descriptor of the sites' program; the skeleton owns it. Not for MODE_SAMPLE. */
int programs_site_fd(const struct pyprof_bpf *skel, enum mode mode);
/*
 * Returns which kinds of sites it needs, one bit each. MODE_COUNT needs those where frames start
 * and code objects end.
 */
unsigned int programs_kinds(const struct pyprof_bpf *skel, enum mode mode);
/*
 * Sets the sites' addresses in the programs, before a uprobe event's probes are attached. Returns
 * 0, or -EEXIST if two sites have the same address.
 */
int programs_set_sites(struct pyprof_bpf *skel, const struct probe_sites *sites);
/*
 * Likewise all of a plan's sites, if that saves the programs a helper call. No program runs
 * meanwhile.
 */
void programs_know_sites(struct pyprof_bpf *skel, const struct plan *plan, uint64_t bias,
			 enum mode mode);
/*
 * Discards all state about code objects and threads, or only about threads: while no probe was attached,
 * addresses were reused and threads continued. No program runs meanwhile, or all return at once.
 */
void programs_forget(struct pyprof_bpf *skel, enum mode mode);
void programs_forget_threads(struct pyprof_bpf *skel);

/* Returns the columns of memory that this kernel allows to measure; 0: memory is not measured. */
uint64_t programs_memory_columns(const struct pyprof_bpf *skel);

#endif
