/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that holds the probes (private to probe/).
 *
 * If a process is killed while it attaches or detaches uprobes, the kernel leaves breakpoints
 * behind ("failed to unregister, leaking uprobe"): a fatal signal makes every access to the
 * target's pages fail (6.18 mm/gup.c, kernel/events/uprobes.c). Such breakpoints slow the target
 * down until it ends. Therefore a child process attaches and detaches instead of the daemon. It
 * blocks all signals, has its own session and does nothing else. When the daemon ends in any way,
 * the holder detaches everything and ends as well.
 *
 * A process has one holder, started on demand and again if it has died.
 */
#ifndef PYPROF_PROBE_HOLDER_H
#define PYPROF_PROBE_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/tracers.h"

struct holder_request {
	bool event;		 /* true: a uprobe event in tracefs; false: a multi-uprobe link */
	int prog_fd;		 /* borrowed */
	int file;		 /* the file to probe; O_PATH suffices; borrowed */
	const uint64_t *offsets; /* offsets in the file; n of them, at most PYP_ALL_SITES */
	const uint64_t *cookies; /* NULL: all 0 */
	uint32_t n;
	pid_t pid; /* see uprobe_multi.h and uprobe_event.h */
};

/*
 * Starts the holder if none is running. It forks, which is best done before anything is attached
 * and while the process is small. Returns 0 or -errno.
 */
int holder_start(void);

/*
 * Ends the holder, if any, and waits for it, at most two seconds. exit(3) does this; _exit(2) does
 * not.
 */
void holder_end(void);

/*
 * Attaches. Returns a descriptor (close-on-exec) that represents the probes, or -errno: the
 * kernel's error, -EPIPE without a holder, -ETIMEDOUT without an answer in HOLDER_LIMIT_MS. The
 * holder detaches them when the descriptor is released or all its copies are closed.
 */
#define HOLDER_LIMIT_MS 20000
int holder_attach(const struct holder_request *r);

/*
 * Runs tracers_find in the holder, whose own links are excluded. file: as above; of->path is not
 * used. -ETIMEDOUT: no answer in HOLDER_FIND_MS.
 */
#define HOLDER_FIND_MS 1000
int holder_find_tracers(const struct tracers_of *of, int file, struct tracers *ret);

/* Starts to detach, without waiting. */
void holder_release_begin(int hold);
/* Returns whether they are detached, without waiting. */
bool holder_released(int hold);
/* Waits until they are detached or until until_ns (CLOCK_MONOTONIC; 0: at most HOLDER_LIMIT_MS). */
bool holder_released_until(int hold, uint64_t until_ns);
/*
 * Detaches, waits until that is done (at most HOLDER_LIMIT_MS) and closes the descriptor. Does
 * nothing for -1.
 */
void holder_release(int *hold);

/*
 * Returns whether the holder has died, and the probes with it. For descriptors that were not
 * released.
 */
bool holder_lost(int hold);

#endif
