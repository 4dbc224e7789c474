/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses a process's marks: attaches them and reads their counts, as session/marks.h asks. */
#ifndef PYPROF_SESSION_CHOOSING_H
#define PYPROF_SESSION_CHOOSING_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/probe.h"
#include "session/marks.h"
#include "session/opcodes.h"

struct choosing {
	struct marks marks;
	struct opcodes *opcodes; /* borrowed; NULL: it finds out all by itself */
	uint64_t end_cpu_ns;	 /* CPU time at end_ns: */
	uint64_t end_ns;	 /* when they began to be detached; 0: they have not */
	uint64_t end_counts[PYP_MARKS];
	bool next;     /* marks.v is to be attached */
	uint64_t hits; /* of marks that are no longer attached, and while they were being attached */
};

/*
 * To be called every few milliseconds until the state is MARKS_KEPT or MARKS_NONE, unless
 * choosing_waits. pid: the probe's process. affords: it has paid for earlier hits, so that marks may be
 * attached for another moment. Returns whether marks have been attached to stay.
 */
bool choosing_turn(struct choosing *c, struct probe *p, pid_t pid, bool affords);
/* Attaches c->marks.v, and notes its counts. Returns false, with the state MARKS_NONE, if that fails. */
bool choosing_attach(struct choosing *c, struct probe *p, pid_t pid);
/* Nothing will be chosen any more, or so soon; to be called before c->opcodes is freed. */
void choosing_end(struct choosing *c);
/* Returns whether the process, which has used cpu_ns so far, has to use more CPU time first. */
bool choosing_waits(const struct choosing *c, uint64_t cpu_ns);
/* Returns the number of hits of kept marks. p NULL: 0 */
uint64_t choosing_kept_hits(const struct choosing *c, const struct probe *p);

#endif
