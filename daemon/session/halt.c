// SPDX-License-Identifier: BSD-2-Clause
/*
 * Halting a target, on request or when it has ended.
 *
 * Everything recorded before the halt counts, and reading a full ring takes long if the daemon has
 * little CPU time. There are therefore two steps. tracee_stop and tracee_end make the BPF programs
 * stop recording immediately. tracee_finish detaches the probes and reads the ring in parts, while
 * the event loop serves clients and other targets. The state in between is SESSION_STOPPING. If the
 * daemon keeps up, the second step follows the first one directly.
 */
#include <stdio.h>

#include "session/collector.h"
#include "session/tracee.h"

/* The maximum time spent reading the ring at once when the target has ended, in ns. */
#define END_NS 50000000ull

static void begin_halt(struct tracee *t)
{
	tracee_taken_read(t);
	if (t->collector->stop)
		t->collector->stop(t);
	probe_silence(t->probe);
	t->halt_ns = tracee_now();
	t->state = SESSION_STOPPING;
}

void tracee_stop(struct tracee *t)
{
	if (t->state == SESSION_TRACING)
		begin_halt(t);
}

static void ended(struct tracee *t)
{
	pace_again_end(&t->pace);
	reference_free(TAKE_PTR(t->reference));
	tracee_timeline_end(t);
	tracee_slow_end(t);
	t->state = SESSION_ENDED;
}

void tracee_end(struct tracee *t, const char *reason)
{
	if (t->state == SESSION_ENDED || t->ends)
		return;
	t->ends = true;
	t->last_ns = tracee_now();
	snprintf(t->end_reason, sizeof(t->end_reason), "%s", reason);
	tracee_stop(t);
	if (t->state == SESSION_STOPPING)
		tracee_finish(t, t->last_ns + END_NS);
	else
		ended(t);
}

bool tracee_stops(const struct tracee *t)
{
	return t->state == SESSION_ATTACHED || (t->state == SESSION_STOPPING && !t->ends);
}

/* Called when all records have been processed. */
static void halted(struct tracee *t)
{
	t->collector->finish(t);
	tracee_taken_read(t);
	t->executed = t->lost_hold = false;
	t->exec_until_ns = 0;
	t->state = SESSION_ATTACHED;
	if (t->ends) {
		ended(t);
		return;
	}
	if (t->collector->stopped)
		t->collector->stopped(t);
	tracee_refer_again(t);
}

bool tracee_settles(const struct tracee *t)
{
	return t->pace.again || (t->reference && t->has_started);
}

/* While nothing is recorded, an exec is not seen. */
void tracee_settle(struct tracee *t)
{
	if (!tracee_settles(t))
		return;
	if (t->reference)
		tracee_refer_again_turn(t);
	if (!t->pace.again)
		return;
	pace_again_turn(&t->pace);
	if (!t->pace.again && !tracee_unchanged(t))
		pace_again_discard(&t->pace);
}

bool tracee_finish(struct tracee *t, uint64_t until_ns)
{
	if (t->state != SESSION_STOPPING)
		return true;
	/*
	 * With windows, the end of the open window is the halt, and the kernel closes the window's
	 * link in the background while the ring is drained.
	 */
	if (!t->collector->windows && !probe_detach_until(t->probe, until_ns)) {
		tracee_drain_until(t, until_ns);
		return false;
	}
	if (!tracee_drain_until(t, until_ns))
		return false;
	halted(t);
	return true;
}
