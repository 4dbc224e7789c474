/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that holds the probes (private to probe/).
 *
 * The kernel leaves breakpoints behind ("failed to unregister, leaking uprobe") when the process
 * that attaches or detaches them is killed meanwhile: a fatal signal makes every access to the
 * target's pages fail (6.18 mm/gup.c, kernel/events/uprobes.c). The target pays for such breakpoints
 * until it ends. So the daemon neither attaches nor detaches: a child process does, which blocks
 * all signals, is in a session of its own and does nothing else. When the daemon ends, in whatever
 * way, the holder detaches everything and ends as well.
 *
 * One holder serves a process; it is started when first needed, and again if it has died.
 */
#ifndef PYPROF_PROBE_HOLDER_H
#define PYPROF_PROBE_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/tracers.h"

struct holder_request {
	bool event;		 /* a uprobe event in tracefs; else a multi-uprobe link */
	int prog_fd;		 /* borrowed */
	int file;		 /* to be probed; O_PATH will do; borrowed */
	const uint64_t *offsets; /* in the file; n of them, PYP_ALL_SITES at most */
	const uint64_t *cookies; /* NULL: all 0 */
	uint32_t n;
	pid_t pid; /* as in uprobe_multi.h and uprobe_event.h */
};

/*
 * Start the holder, if none runs: a fork, which is better done before anything is attached and
 * while this process is small. 0 or -errno.
 */
int holder_start(void);

/* End it, if there is one, and wait for that, two seconds at most. exit(3) does so; who calls
 * _exit(2) does not. */
void holder_end(void);

/*
 * Attach. Returns a descriptor (close-on-exec) that stands for the probes, or what the kernel
 * answered as -errno; -EPIPE: there is no holder; -ETIMEDOUT: no answer in HOLDER_LIMIT_MS. They are
 * detached when the descriptor is released, or closed by all who have it.
 */
#define HOLDER_LIMIT_MS 20000
int holder_attach(const struct holder_request *r);

/*
 * tracers_find, in the holder: its own links are not among them. file: as above; of->path is not
 * read. -ETIMEDOUT: no answer in HOLDER_FIND_MS.
 */
#define HOLDER_FIND_MS 1000
int holder_find_tracers(const struct tracers_of *of, int file, struct tracers *ret);

/* Begin to detach; does not wait. */
void holder_release_begin(int hold);
/* Are they detached? Never waits. */
bool holder_released(int hold);
/* Wait for it until until_ns (CLOCK_MONOTONIC; 0: HOLDER_LIMIT_MS at most). */
bool holder_released_until(int hold, uint64_t until_ns);
/* Detach, wait until it is done (HOLDER_LIMIT_MS at most), close the descriptor. -1: nothing. */
void holder_release(int *hold);

/* Has the holder died, and the probes with it? For one that was not released. */
bool holder_lost(int hold);

#endif
