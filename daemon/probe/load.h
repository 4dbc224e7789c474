/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading BPF programs on a thread (private to probe/): the kernel verifies them for 50 to 150 ms.
 * One is loaded at a time, in the order of load_begin, so that a daemon that attaches to many
 * processes takes one CPU for it.
 */
#ifndef PYPROF_PROBE_LOAD_H
#define PYPROF_PROBE_LOAD_H

#include <stdbool.h>

struct load;

/* What is loaded: load() is called on the thread. */
struct load_of {
	int (*load)(void *ctx); /* returns 0 or a negative errno */
	void (*free)(void *ctx);
	void *ctx;
};

/*
 * Starts to load it; nobody else may use ctx until load_end(). *ret is set on success. Returns 0
 * or a negative errno, in particular if this process was forked by one that has called it. Of one
 * thread, like all that follow.
 */
int load_begin(const struct load_of *of, struct load **ret);
/* Returns whether load_end() will not wait. */
bool load_done(struct load *l);
/* Waits for the end, frees l and returns the result. */
int load_end(struct load *l);
/* Frees ctx and l, now or at the end. What has not begun is not loaded. */
void load_abandon(struct load *l);

/*
 * Returns a new descriptor for epoll's edge-triggered mode, in which each load that ends is an event, or
 * a negative errno. It is an eventfd; several watch it, so nobody reads it.
 */
int loads_fd(void);

#endif
