/* SPDX-License-Identifier: BSD-2-Clause */
/* A probe on a fake target, with its decoded events in order. */
#ifndef PYPROF_TESTS_HARNESS_PROBE_RIG_H
#define PYPROF_TESTS_HARNESS_PROBE_RIG_H

#include "event/event.h"
#include "harness/fake_target.h"
#include "probe/probe.h"

struct probe_rig {
	struct fake_target target;
	struct plan plan;
	struct probe *probe;
	uint64_t attached_at;
	bool with_switches; /* keep SWITCH_IN and SWITCH_OUT too */
	struct event *events;
	void **records; /* the memory that the events point to */
	size_t n, room;
};

/* Start a target and attach to all its sites. ring_bytes: 0 for the default. */
void probe_rig_start(struct probe_rig *rig, size_t ring_bytes);
void probe_rig_stop(struct probe_rig *rig);

/* Open a probe with rig->plan on the running target, and attach it. */
void probe_rig_open(struct probe_rig *rig, size_t ring_bytes);
void probe_rig_attach(struct probe_rig *rig);

/* Add the events in the ring. Returns the total number. */
size_t probe_rig_drain(struct probe_rig *rig);
void probe_rig_clear(struct probe_rig *rig);
const struct event *probe_rig_event(const struct probe_rig *rig, size_t i);
size_t probe_rig_count(const struct probe_rig *rig, enum pyp_rec_type type);
/* The i-th event of a type. */
const struct event *probe_rig_find(const struct probe_rig *rig, enum pyp_rec_type type, size_t i);

/* Fail unless every loss counter is 0. */
void probe_rig_check_no_loss(const struct probe_rig *rig);

#endif
