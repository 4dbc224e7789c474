/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes on a target: the only user of the BPF skeleton. Loads one instance of the programs per
 * target, attaches the plan's sites all at once by one of the kernel's mechanisms, drains the
 * target's ring.
 */
#ifndef PYPROF_PROBE_PROBE_H
#define PYPROF_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "probe/mechanism.h"
#include "probe/opts.h"
#include "probe/ring.h"
#include "probe/tracers.h"

struct probe;

/*
 * Start the process that holds probes (probe/holder.h): a fork, which is best done while this
 * process is small and has nothing open. What fails is tried again by probe_open.
 */
void probe_prepare(void);

/* Load programs and maps; nothing touches the target yet. Errors name the missing capability
 * (exit 4) or kernel feature (exit 5). */
int probe_open(const struct probe_opts *opts, struct probe **ret, struct diag *diag);
void probe_free(struct probe *p); /* detaches if attached */
DEFINE_FREEP(struct probe, probe_free)

/*
 * Name the process, what it is attached through, its plan, its bias and the addresses for sampling,
 * of a probe that is not attached (or change them for the next time): loading takes ten times as
 * long as attaching, so probes for children to come are loaded beforehand. The other options are as
 * they were. -ENOMEM: nothing has changed.
 *
 * A multi-uprobe link is for processes whose main thread lives: for another tid, a uprobe event is
 * used, which needs a probe that was opened with such a tid.
 */
int probe_set_target(struct probe *p, const struct probe_opts *opts);

/* Where the target's GILs are, at any time; none known: waiting for one is waiting for a lock. */
void probe_set_gils(struct probe *p, const struct pyp_gil_range v[PYP_GIL_RANGES]);

/* Put the probes on; every thread counts as unseen afterwards. *ret_ts: CLOCK_MONOTONIC from which
 * on events may come. */
int probe_attach(struct probe *p, uint64_t *ret_ts, struct diag *diag);
/* No hit is recorded any more; the probes are still on, until probe_detach. Takes no time. */
void probe_silence(struct probe *p);
/* Take them off. What is in the ring stays there to be drained. */
void probe_detach(struct probe *p);
/* Begin to detach and wait for the end until until_ns (CLOCK_MONOTONIC; 0: as long as it takes).
 * False: not over, call it again. */
bool probe_detach_until(struct probe *p, uint64_t until_ns);
bool probe_attached(const struct probe *p);
/*
 * Other programs' multi-uprobe links at its sites, of other processes: each pays for both. 0 or
 * -errno, where it cannot be found out; in MODE_SAMPLE there are none.
 */
int probe_tracers(const struct probe *p, struct tracers *ret);
/* The same for a process that nothing of ours is attached to; slower to return, see tracers.h. */
int probe_tracers_of(pid_t pid, const char *via, const struct plan *plan, struct tracers *ret);
/* They have been detached by somebody else: the process that holds them has died (probe/holder.h). */
bool probe_lost(const struct probe *p);
enum probe_mechanism probe_mechanism(const struct probe *p);

/*
 * The process has executed a program from the same file: the kernel has put the probes on that as
 * well, and they are silent. Let them speak again; everything counts as unseen, as after
 * probe_attach. -ENOTSUP: they are to be put on anew. -ENOTCONN: none are on.
 */
int probe_rearm(struct probe *p, uint64_t *ret_ts);

/*
 * Tell of children at once, and of their children: FORK and EXEC records wake the reader of the
 * ring. forget: this descendant has a probe of its own now, or is no concern of ours.
 */
void probe_follow(struct probe *p, bool on);
void probe_follow_forget(struct probe *p, pid_t descendant);

/*
 * Windows: what is to be watched only now and then is attached without calls and returns
 * (probe_attach_windows), and these come while a window is open. Opening costs the target some
 * microseconds per site, closing likewise; what the kernel waits for at the close happens beside,
 * and until it is over (probe_window_ready) no other window opens. What is known about code objects
 * outlives windows, what is known about threads does not. *ret_ts: from or up to when events come;
 * -ESRCH: the process is no more what it was. probe_detach closes whatever is open.
 *
 * Where it was opened with PYP_SAMPLING_BETWEEN, stacks are sampled while no window is open and no
 * breakpoint of one is there. The clocks may be refused: then windows are all there is.
 */
int probe_attach_windows(struct probe *p, struct diag *diag);
int probe_window_open(struct probe *p, uint64_t *ret_ts, struct diag *diag);
/* From *ret_ts on, nothing is recorded; close it soon. */
void probe_window_silence(struct probe *p, uint64_t *ret_ts);
void probe_window_close(struct probe *p);
bool probe_window_ready(struct probe *p);
/* 1: it is sampled between windows or beside probes (or will be, if not attached); 0: it was not asked
 * for; a negative errno: the clocks were refused when it was attached last. */
int probe_samples(const struct probe *p);
/* Samples beside probes that were dropped since it was opened, because they are of the probes' time. */
struct pyp_trap_samples probe_trap_samples(const struct probe *p);

/* The time from an event's clock to the end of its program, of some events: since it was opened. See
 * base/cost.h. */
struct probe_gauge {
	uint64_t ns, n;
};
struct probe_gauge probe_gauge(const struct probe *p);

/* Remove breakpoints that a forked child inherited (or see to it that it does so itself). */
int probe_sweep_child(struct probe *p, pid_t child, struct diag *diag);

/*
 * Hand the records in the ring, oldest first, to fn: those that are there at the time of the call,
 * and of these at most `budget` (0: all), or as many as can be handled until until_ns
 * (CLOCK_MONOTONIC; 0: all). Returns the number handed over, or a negative errno. fd: signalled when the ring gets more than half
 * full, once until the next drain; otherwise drain on a timer. Poll it edge-triggered: by level it
 * is readable whenever there is any record.
 */
int probe_drain(struct probe *p, size_t budget, probe_record_fn fn, void *ctx);
int probe_drain_until(struct probe *p, uint64_t until_ns, probe_record_fn fn, void *ctx);
/* How far the ring was written and read, in bytes since it was made. */
uint64_t probe_written(const struct probe *p);
uint64_t probe_read(const struct probe *p);
int probe_ring_fd(const struct probe *p);

/* Where it samples: how much CPU time a sample stands for. */
uint64_t probe_period(const struct probe *p);

int probe_counts(const struct probe *p, struct probe_count **ret, size_t *ret_n);
/* Start again from 0 with one. Exact if its thread has ended, or the probes are off. */
void probe_counts_drop(const struct probe *p, const struct pyp_edge *edge);

/* The BPF side's losses (PYP_LOSS_*), since open. Hits per site: records say their site. */
void probe_losses(const struct probe *p, uint64_t out[PYP_LOSS_MAX]);

/* To be called before _exit(2) by a process that has opened probes, and has freed them: ends what
 * was started for them. */
void probe_end(void);

/* What this machine can do: 0, or a diag that names what is missing (exit 4: a capability, by
 * name; exit 5: a kernel feature, by name). Asks the kernel, never its version. ret: may be NULL. */
int probe_check(enum probe_mechanism *ret, struct diag *diag);

#endif
