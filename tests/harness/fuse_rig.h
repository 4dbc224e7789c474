/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon that traces a busy target, the neighbour, beside a hostile process whose files are on a
 * FUSE file system. When the file system's server stops answering, the daemon must continue to
 * serve its clients and the neighbour.
 *
 *	static struct fuse_rig rig;
 *	TestSuite(x, .init = fuse_rig_require, .fini = end, .timeout = 100);
 *
 *	fuse_rig_mount(&rig, NULL);
 *	fuse_rig_daemon(&rig);
 *	fuse_rig_hostile(&rig, "/usr/bin/python3", "fuse_over.py");
 */
#ifndef PYPROF_TESTS_HARNESS_FUSE_RIG_H
#define PYPROF_TESTS_HARNESS_FUSE_RIG_H

#include "harness/daemon.h"
#include "harness/fuse.h"
#include "harness/traced.h"

#define FUSE_RIG_STATUS 1.0  /* within this many seconds the daemon answers status and stop */
#define FUSE_RIG_ATTACH 15.0 /* within this many seconds attach succeeds or reports its error */

struct fuse_rig {
	struct fuse_fs fs;
	struct pyprofd d;
	struct traced hostile, neighbour;
	char hostile_pid[16], neighbour_pid[16];
};

/* Skip the test unless it runs as root. */
void fuse_rig_require(void);
/* Mount the file system, as fuse_start() does; skip the test if that is not possible. */
void fuse_rig_mount(struct fuse_rig *r, const char *content);
/* Start the neighbour and a daemon that traces it. */
void fuse_rig_daemon(struct fuse_rig *r);
/* Start `exe tests/targets/SCRIPT FILE`, where FILE is the file on the FUSE file system. */
void fuse_rig_hostile(struct fuse_rig *r, const char *exe, const char *script);
/* Request the status from a daemon until the child has exited, within FUSE_RIG_ATTACH; fail if one
 * answer takes longer than FUSE_RIG_STATUS. Returns the child's exit code. */
int fuse_rig_serve_until(const struct pyprofd *of, pid_t child);
/* Fail unless this daemon has received events of the neighbour and lost none. */
void fuse_rig_check_neighbour(const struct fuse_rig *r, const struct pyprofd *of);
/*
 * End all processes and unmount. The server ends first: processes that wait for it cannot end
 * before.
 */
void fuse_rig_end(struct fuse_rig *r);

#endif
