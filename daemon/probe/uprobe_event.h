/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A uprobe event with many probes, for kernels without uprobe_multi links: a definition in tracefs,
 * which is global to the machine, and a perf event on it for one process. There are no cookies: the
 * program identifies its sites by the address of the instruction.
 *
 * The kernel removes the probes when the perf event's descriptor is closed for any reason. The
 * definition survives its process; it has no effect then, and the next process that opens an event
 * removes it.
 */
#ifndef PYPROF_PROBE_UPROBE_EVENT_H
#define PYPROF_PROBE_UPROBE_EVENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct uprobe_event_opts {
	int prog_fd;	  /* a program without an attach type */
	const char *name; /* from uprobe_event_name */
	const char *path;
	const uint64_t *offsets; /* offsets in the file */
	uint32_t n;
	pid_t pid; /* all its threads, and processes that share its memory */
};

struct uprobe_event {
	int tracefs, perf;
	char name[64]; /* GROUP/EVENT */
};

/*
 * Returns a name that no other process uses, and from which others can determine whether the
 * calling process still lives. 0 or -errno.
 */
int uprobe_event_name(char name[64]);

/* Returns 0, or -errno with everything undone. */
int uprobe_event_open(const struct uprobe_event_opts *o, struct uprobe_event *ret);
void uprobe_event_close(struct uprobe_event *e); /* detaches the probes */

/*
 * Checks whether events can be defined here. Returns 0 or -errno; -ENODEV: the kernel lacks them.
 */
int uprobe_event_possible(void);

/*
 * Parses a line of uprobe_events: the event's name and the process that defined it. -EINVAL: not
 * defined by a pyprofd. Pure.
 */
struct uprobe_event_maker {
	unsigned long pid_ns; /* inode of its pid namespace */
	pid_t pid;
	uint64_t starttime;
};
int uprobe_event_parse(const char *line, char name[64], struct uprobe_event_maker *ret);

#endif
