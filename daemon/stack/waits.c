// SPDX-License-Identifier: BSD-2-Clause
/* Waiting by reason: see waits.h. */
#include "stack/waits.h"

/* In the order of enum wait_reason. */
static const uint8_t columns[WAITS] = {
	[WAIT_gil] = COLUMN_gil,	   [WAIT_lock] = COLUMN_lock,
	[WAIT_runnable] = COLUMN_runnable, [WAIT_disk] = COLUMN_io_disk,
	[WAIT_socket] = COLUMN_io_socket,  [WAIT_poll] = COLUMN_io_poll,
	[WAIT_pipe] = COLUMN_io_pipe,	   [WAIT_device] = COLUMN_io_device,
	[WAIT_sleep] = COLUMN_sleep,	   [WAIT_fault] = COLUMN_fault,
	[WAIT_process] = COLUMN_process,   [WAIT_other] = COLUMN_other,
};

int waits_column(enum wait_reason why)
{
	return columns[why];
}

static void add(struct calltree *t, uint32_t node, enum wait_reason why, uint64_t ns)
{
	calltree_add(t, node, columns[why], ns);
	if (wait_is_io(why))
		calltree_add(t, node, COLUMN_io, ns);
}

/* Subtracts up to ns from a reason. Returns the amount subtracted. */
static uint64_t take(struct calltree *t, uint32_t node, enum wait_reason why, uint64_t ns)
{
	uint64_t *of = t->columns[columns[why]];
	uint64_t have = of ? of[node] : 0;

	if (ns > have)
		ns = have;
	if (!ns)
		return 0;
	of[node] -= ns;
	if (wait_is_io(why))
		t->columns[COLUMN_io][node] -= ns;
	return ns;
}

void waits_change(struct calltree *t, uint32_t node, uint64_t before, enum wait_reason why)
{
	uint64_t now = waits_of(&t->nodes[node]), rest;

	if (!waits_booked(t))
		return;
	if (now >= before) {
		if (now > before)
			add(t, node, why, now - before);
		return;
	}
	rest = before - now;
	rest -= take(t, node, why, rest);
	for (int other = WAITS - 1; other >= 0 && rest; other--)
		rest -= take(t, node, (enum wait_reason)other, rest);
}

void waits_move(struct calltree *t, uint32_t node, enum wait_reason from, enum wait_reason to,
		uint64_t ns)
{
	if (from == to || !waits_kept(t))
		return;
	ns = take(t, node, from, ns);
	if (ns)
		add(t, node, to, ns);
}

enum wait_reason waits_reason(const struct event_switch *sw)
{
	switch (sw->wait) {
	case PYP_WAIT_CPU:
		return WAIT_runnable;
	case PYP_WAIT_GIL:
		return WAIT_gil;
	case PYP_WAIT_FAULT:
		return WAIT_fault;
	case PYP_WAIT_SYSCALL:
		return wait_of_syscall(sw->syscall, sw->arg[0], sw->arg[1], sw->fd);
	default:
		return WAIT_other;
	}
}
