/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Snapshots for tests, from a few lines of text or call by call:
 *
 *	target 42
 *	thread 42 43 worker
 *	main app.py:1 1 1000
 *	  f app.py:10 3 2000 2500
 *	    f app.py:10 2 500
 *
 * A calling context is "name file:line calls cpu_ns [wall_ns [inflight]]"; a line indented by two
 * more blanks is called by the line above. Wall time defaults to the CPU time. The builder fills
 * every other field with a plausible value; a test that needs another value sets it in the
 * snapshot.
 */
#ifndef PYPROF_TESTS_HARNESS_SNAPSHOT_BUILDER_H
#define PYPROF_TESTS_HARNESS_SNAPSHOT_BUILDER_H

#include "snapshot/snapshot.h"

struct snapshot_builder;

struct snapshot_builder *snapshot_builder_new(void);
uint32_t snapshot_builder_target(struct snapshot_builder *b, uint32_t pid);
/* Returns the thread's root node. */
uint32_t snapshot_builder_thread(struct snapshot_builder *b, uint32_t pid, uint32_t tid,
				 const char *name);
uint32_t snapshot_builder_func(struct snapshot_builder *b, const char *file, int32_t line,
			       const char *name, const char *qualname);
uint32_t snapshot_builder_node(struct snapshot_builder *b, uint32_t parent, uint32_t func,
			       uint64_t calls, uint64_t cpu, uint64_t wall, uint32_t inflight);
/* Finish the snapshot and free the builder. */
struct snapshot *snapshot_builder_finish(struct snapshot_builder *b);

/* Build a snapshot from text. */
struct snapshot *snapshot_build(const char *text);

#endif
