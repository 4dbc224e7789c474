/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes on a target: the only user of the BPF skeleton. Loads one instance of the programs per
 * target, attaches all sites of the plan at once by one of the kernel's mechanisms, and drains the
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
 * Starts the process that holds probes (probe/holder.h). It forks, which is best done while this
 * process is small and has nothing open. probe_open retries on failure.
 */
void probe_prepare(void);

/*
 * Loads programs and maps without touching the target. Returns 0, or an error that names the
 * missing capability (exit code 4) or kernel feature (exit code 5).
 */
int probe_open(const struct probe_opts *opts, struct probe **ret, struct diag *diag);
/*
 * The same in two parts, because loading takes 50 to 150 ms: begin loads on a thread; opened waits
 * for it and completes the probe. Before that, nothing else may be called but probe_free(), is_ready
 * (whether opened will not wait) and opens (whether opts are those of begin, as far as they cannot be
 * changed later). What *opts refers to must remain valid until then.
 */
int probe_open_begin(const struct probe_opts *opts, struct probe **ret, struct diag *diag);
bool probe_is_ready(const struct probe *p);
bool probe_opens(const struct probe *p, const struct probe_opts *opts);
int probe_opened(struct probe *p, struct diag *diag);
/* A new descriptor, in which each probe that becomes ready is an edge: see loads_fd(). */
int probe_ready_fd(void);
void probe_free(struct probe *p); /* detaches if necessary */
DEFINE_FREEP(struct probe, probe_free)

/*
 * Sets or changes the process, the path to attach through, the plan, the bias and the addresses for
 * sampling of a probe that is not attached. Loading takes ten times as long as attaching, so probes
 * for future children are loaded in advance. Other options stay the same. Returns 0, or -ENOMEM
 * with nothing changed.
 *
 * A multi-uprobe link requires a live main thread. Another tid needs a uprobe event, and a probe
 * that was opened with such a tid.
 */
int probe_set_target(struct probe *p, const struct probe_opts *opts);

/*
 * Sets the addresses of the target's GILs, at any time. Without them, waiting for the GIL counts as
 * waiting for a lock.
 */
void probe_set_gils(struct probe *p, const struct pyp_gil_range v[PYP_GIL_RANGES]);

/*
 * From now on, LEAVE records report whether an exception leaves the frame (PYP_LEAVE_RAISED), at the cost
 * of two to four reads; or they do not. At any time, in mode trace.
 */
void probe_report_raised(struct probe *p, bool on);

/*
 * Attaches the probes; every thread is unknown afterwards. *ret_ts: CLOCK_MONOTONIC time (ns) of
 * the earliest possible event.
 */
int probe_attach(struct probe *p, uint64_t *ret_ts, struct diag *diag);
/* Stops recording hits immediately. The probes stay attached until probe_detach. */
void probe_silence(struct probe *p);
/* Detaches the probes. Buffered records remain readable. */
void probe_detach(struct probe *p);
/*
 * Starts to detach and waits until until_ns (CLOCK_MONOTONIC; 0: no limit). Returns false if it has
 * not finished; call it again.
 */
bool probe_detach_until(struct probe *p, uint64_t until_ns);
bool probe_attached(const struct probe *p);
/*
 * Counts other programs' multi-uprobe links at this probe's sites in the target; a hit costs the
 * sum of all links. Returns 0, or -errno if this cannot be determined. MODE_SAMPLE has no sites.
 */
int probe_tracers(const struct probe *p, struct tracers *ret);
/*
 * The same for a process without probes of this daemon. It takes longer to return, see tracers.h.
 */
int probe_tracers_of(pid_t pid, const char *via, const struct plan *plan, struct tracers *ret);
/* Returns whether the probes were detached because their holder has died (probe/holder.h). */
bool probe_lost(const struct probe *p);
enum probe_mechanism probe_mechanism(const struct probe *p);
/* The optional columns that its records fill, a bit mask; those of waiting are not included. */
uint64_t probe_columns(const struct probe *p);

/*
 * Enables the probes after the process has executed a program from the same file: the kernel has
 * inserted them again, but the exec disabled recording. All state is void, as after probe_attach.
 * Returns 0, -ENOTSUP if they must be attached again, -ENOTCONN if none are attached.
 */
int probe_rearm(struct probe *p, uint64_t *ret_ts);

/*
 * Reports children and their children at once: FORK and EXEC records wake the reader of the ring.
 * forget: stop reporting this descendant's children, because it has its own probe or is not
 * followed.
 */
void probe_follow(struct probe *p, bool on);
void probe_follow_forget(struct probe *p, pid_t descendant);

/*
 * Windows: probe_attach_windows attaches without calls and returns, which are attached while a
 * window is open. Opening takes the target a few microseconds per site, as does closing. The kernel
 * completes the close in the background; no other window opens before that (probe_window_ready).
 * Code objects stay known across windows, threads do not. *ret_ts: time of the first or last
 * possible event; -ESRCH: the process has ended or executed another program. probe_detach closes an
 * open window.
 *
 * Stacks are sampled in windows and between them. If the kernel refuses the sampling timers, windows work
 * without samples.
 */
int probe_attach_windows(struct probe *p, struct diag *diag);
int probe_window_open(struct probe *p, uint64_t *ret_ts, struct diag *diag);
/* Stops recording at *ret_ts. Close the window soon. */
void probe_window_silence(struct probe *p, uint64_t *ret_ts);
void probe_window_close(struct probe *p);
bool probe_window_ready(struct probe *p);
/*
 * Marks: instructions of the plan, by number, that are counted all the time, also before probe_attach,
 * and recorded in windows (MARK) if the options say so. Attach at most one set at a time; -EOPNOTSUPP: this kernel or this probe has none.
 * release starts to detach; released returns whether that has finished. The counts are since the probe
 * was opened. probe_detach detaches marks as well.
 */
int probe_marks_attach(struct probe *p, const uint8_t *which, uint32_t n);
void probe_marks_release(struct probe *p);
bool probe_marks_released(struct probe *p);
void probe_marks_detach(struct probe *p);
void probe_marks_read(const struct probe *p, uint64_t ret[PYP_MARKS]);
/* Passes the counts of threads to fn, as far as they are known, or resets them. */
typedef void (*probe_marks_fn)(void *ctx, uint32_t tid, uint64_t marks);
void probe_marks_threads(const struct probe *p, probe_marks_fn fn, void *ctx);
void probe_marks_forget_threads(struct probe *p);

/*
 * Returns 1 if it samples, alone or alongside probes (or will when attached), 0 if samples
 * were not requested, a negative errno if the timers were refused at the last attach.
 */
int probe_samples(const struct probe *p);
/* Returns the samples dropped since the probe was opened, because they hit the probes' own time. */
struct pyp_trap_samples probe_trap_samples(const struct probe *p);

/*
 * The probe-latency reference: the time from an event's clock to the end of its program, summed
 * over some events since the probe was opened. See base/cost.h.
 */
struct probe_latency {
	uint64_t ns, n;
};
struct probe_latency probe_latency(const struct probe *p);

/*
 * Removes breakpoints that a forked child inherited, or makes sure that hits remove them. Returns 0
 * or an error.
 */
int probe_sweep_child(struct probe *p, pid_t child, struct diag *diag);

/*
 * Passes the records in the ring to fn, oldest first: those present at the call, at most `budget`
 * of them (0: all), until until_ns (CLOCK_MONOTONIC; 0: no deadline). Returns their number or a
 * negative errno. fd: becomes readable when the ring is more than half full, once until the next
 * drain; otherwise drain on a timer. Poll it edge-triggered: level-triggered, it is readable
 * whenever there is a record.
 */
int probe_drain(struct probe *p, size_t budget, probe_record_fn fn, void *ctx);
int probe_drain_until(struct probe *p, uint64_t until_ns, probe_record_fn fn, void *ctx);
/* Return the bytes written to and read from the ring since it was created. */
uint64_t probe_written(const struct probe *p);
uint64_t probe_read(const struct probe *p);
int probe_ring_fd(const struct probe *p);

/* With sampling: returns the mean CPU time per sample in ns. */
uint64_t probe_period(const struct probe *p);
/* Takes one of so many samples (0, 1: all), at random; each counts as many periods. MODE_SAMPLE. */
void probe_set_skip(struct probe *p, uint32_t one_in);
/* Returns whether it samples now. jitter: to be called often meanwhile, see probe/sampler.h. */
bool probe_is_sampling(const struct probe *p);
void probe_jitter(struct probe *p, uint64_t now_ns);

int probe_counts(const struct probe *p, struct probe_count **ret, size_t *ret_n);
/* Resets one count to 0. Exact if its thread has ended or the probes are detached. */
void probe_counts_drop(const struct probe *p, const struct pyp_edge *edge);

/*
 * Returns whether the code object whose CODE record has this time has not been freed, as far as probes of
 * calls have reported it. Ask after reading it.
 */
bool probe_code_lives(const struct probe *p, uint64_t code, uint64_t announced_ns);

/* Copies the losses that the BPF programs have counted since open (PYP_LOSS_*). */
void probe_losses(const struct probe *p, uint64_t out[PYP_LOSS_MAX]);

/*
 * Ends the processes started for probes. Call it before _exit(2) in a process that has opened
 * probes and freed them.
 */
void probe_end(void);

/*
 * Checks what this machine supports. Returns 0, or an error that names the missing capability (exit
 * code 4) or kernel feature (exit code 5). Tests the kernel rather than its version. ret may be
 * NULL.
 */
int probe_check(enum probe_mechanism *ret, struct diag *diag);

#endif
