/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One uprobe event with many probes, for kernels without uprobe_multi links: a definition in
 * tracefs, which is global to the machine, and one perf event on it, which is for one process. No
 * cookies: a program tells its sites by the address of the instruction.
 *
 * The kernel takes the probes off when the perf event's descriptor is closed, however that comes
 * about. The definition alone survives its maker: it does nothing then, and whoever opens an event
 * next removes it.
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
	const uint64_t *offsets; /* in the file */
	uint32_t n;
	pid_t pid; /* every thread of it, and whoever shares its memory */
};

struct uprobe_event {
	int tracefs, perf;
	char name[64]; /* GROUP/EVENT */
};

/*
 * A name for an event that no other process uses, and by which others can tell whether the process
 * that this is called in still lives. 0 or -errno.
 */
int uprobe_event_name(char name[64]);

/* 0 or -errno; nothing is left behind on failure. */
int uprobe_event_open(const struct uprobe_event_opts *o, struct uprobe_event *ret);
void uprobe_event_close(struct uprobe_event *e); /* the probes are off afterwards */

/* Can events be defined here? 0 or -errno; -ENODEV: the kernel has no such thing. */
int uprobe_event_possible(void);

/* A line of uprobe_events: the name of its event and its maker; -EINVAL: none of ours. Pure. */
struct uprobe_event_maker {
	unsigned long pid_ns; /* inode of its pid namespace */
	pid_t pid;
	uint64_t starttime;
};
int uprobe_event_parse(const char *line, char name[64], struct uprobe_event_maker *ret);

#endif
