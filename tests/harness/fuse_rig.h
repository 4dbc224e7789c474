/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon that traces a busy target, the neighbour, beside a hostile process whose files are on a
 * FUSE file system. When the file system's server stops answering, the daemon must continue to
 * serve its clients and the neighbour.
 *
 *	static struct fuse_rig rig;
 *	TestSuite(x, .init = fuse_rig_require, .fini = end);
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
/*
 * Request the status from a daemon until the child has exited. The file system stays silent until
 * then, so a daemon that waits for it answers neither. Returns the child's exit code.
 */
int fuse_rig_serve_until(const struct pyprofd *of, pid_t child);
/* Wait until this daemon has received events of the neighbour; fail if it lost one. */
void fuse_rig_check_neighbour(const struct fuse_rig *r, const struct pyprofd *of);
/*
 * End all processes and unmount. The server ends first: processes that wait for it cannot end
 * before.
 */
void fuse_rig_end(struct fuse_rig *r);

#endif
