/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The systemd unit and the container of a process, from the names of its control groups. Users can
 * create groups of any name below their own, so these names are hostile.
 */
#ifndef PYPROF_FIND_CGROUP_H
#define PYPROF_FIND_CGROUP_H

#define CGROUP_NAME_MAX 256

struct cgroup_place {
	char unit[CGROUP_NAME_MAX];	 /* "web.service", of the system or of a user; "": none */
	char runtime[16];		 /* "docker", "podman", "kubernetes", "lxc" …; "": none */
	char container[CGROUP_NAME_MAX]; /* its id, or its name for lxc and nspawn; "": none */
};

/*
 * Parse the text of /proc/PID/cgroup (versions 1 and 2). The innermost container is used, and the
 * innermost unit in it. Never fails: what is not recognised leaves *ret empty. Pure.
 */
void cgroup_parse(const char *text, struct cgroup_place *ret);

#endif
