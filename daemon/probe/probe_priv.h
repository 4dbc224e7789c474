/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a probe (private to probe/). */
#ifndef PYPROF_PROBE_PROBE_PRIV_H
#define PYPROF_PROBE_PROBE_PRIV_H

#include "probe/probe.h"
#include "probe/programs.h"

struct holder_request;
struct ticker;

/* Objects that keep the probes attached. */
struct attachment {
	int hold; /* see probe/holder.h; -1: none */
	struct ticker *ticker;
};
#define PROBE_NOT_ATTACHED ((struct attachment){.hold = -1})

struct probe {
	struct pyprof_bpf *skel; /* NULL: it is being opened, with these opts */
	struct programs_opening opening;
	struct probe_opts opts;
	struct ring *ring;
	const struct plan *plan;
	char *via;
	pid_t pid, tid;
	uint64_t bias;
	enum mode mode;
	bool momentary; /* see struct probe_sampling */
	bool shares;	/* the timers; see ticker_prepare */
	bool used;	/* it was attached before */
	enum probe_mechanism mechanism;
	struct attachment on; /* of the target */
	/* Fields for windows. */
	bool windows, releasing;   /* releasing: detaching has started and not finished */
	struct attachment between; /* sites attached between windows, and timers */
	int clocks;		   /* result of opening the timers: see probe_samples */
	int closing;		   /* the previous one, while it is detached; -1: none */
	int marks;		   /* see probe_marks_attach; -1: none */
	bool marks_releasing;
	uint8_t mark_numbers[PYP_MARKS];  /* in the plan, of those attached last */
	uint64_t mark_offsets[PYP_MARKS]; /* likewise */
	uint32_t nmarks;
};

/*
 * Fills the addresses where interrupts belong to the time of probes that samples are taken beside, and of
 * attached marks: see sample_is_of_trap in bpf/sample.bpf.c. Returns 0 or -errno.
 */
int probe_fill_traps(const struct probe *p);
/* As probe_sweep_child, for marks. */
int probe_marks_sweep(struct probe *p, pid_t child);
/* Returns a descriptor of the file to probe, or -errno. */
int probe_open_file(const struct probe *p);
/* As holder_attach(). */
int probe_hold(const struct holder_request *r);

#endif
