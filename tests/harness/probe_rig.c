// SPDX-License-Identifier: BSD-2-Clause
/* A probe on a fake target: see probe_rig.h. */
#include "harness/probe_rig.h"

#include "event/decode.h"
#include "harness/test.h"

#define RING_DEFAULT (32u << 20)

void probe_rig_open(struct probe_rig *rig, size_t ring_bytes)
{
	struct probe_opts opts = {.pid = rig->target.pid,
				  .via = rig->target.via,
				  .ring_bytes = ring_bytes ? ring_bytes : RING_DEFAULT,
				  .layout = rig->target.layout,
				  .plan = &rig->plan};
	struct diag diag = {0};

	assert_diag_ok(probe_open(&opts, &rig->probe, &diag), &diag);
}

void probe_rig_attach(struct probe_rig *rig)
{
	struct diag diag = {0};

	assert_diag_ok(probe_attach(rig->probe, &rig->attached_at, &diag), &diag);
	cr_assert(probe_attached(rig->probe));
}

void probe_rig_start(struct probe_rig *rig, size_t ring_bytes)
{
	*rig = (struct probe_rig){0};
	fake_target_start(&rig->target);
	fake_target_plan(&rig->plan);
	probe_rig_open(rig, ring_bytes);
	probe_rig_attach(rig);
}

void probe_rig_stop(struct probe_rig *rig)
{
	probe_free(rig->probe);
	fake_target_stop(&rig->target);
	probe_rig_clear(rig);
	free(rig->events);
	free(rig->records);
}

static void make_room(struct probe_rig *rig)
{
	if (rig->n < rig->room)
		return;
	rig->room = rig->room ? rig->room * 2 : 256;
	rig->events = realloc(rig->events, rig->room * sizeof(*rig->events));
	rig->records = realloc(rig->records, rig->room * sizeof(*rig->records));
	cr_assert(rig->events && rig->records);
}

static bool is_switch(uint8_t type)
{
	return type == PYP_REC_SWITCH_IN || type == PYP_REC_SWITCH_OUT;
}

static void keep(void *ctx, const void *data, size_t size)
{
	struct probe_rig *rig = ctx;
	void *copy = malloc(size);
	struct event ev;

	cr_assert(copy);
	memcpy(copy, data, size);
	cr_assert_eq(decode_event(copy, size, &ev), DECODE_OK, "type %u",
		     ((const struct pyp_rec *)data)->type);
	if (is_switch(ev.type) && !rig->with_switches) {
		free(copy);
		return;
	}
	make_room(rig);
	rig->events[rig->n] = ev;
	rig->records[rig->n++] = copy;
}

size_t probe_rig_drain(struct probe_rig *rig)
{
	cr_assert(probe_drain(rig->probe, 0, keep, rig) >= 0);
	return rig->n;
}

void probe_rig_clear(struct probe_rig *rig)
{
	while (rig->n)
		free(rig->records[--rig->n]);
}

const struct event *probe_rig_event(const struct probe_rig *rig, size_t i)
{
	cr_assert(i < rig->n, "there is no event %zu, only %zu", i, rig->n);
	return &rig->events[i];
}

size_t probe_rig_count(const struct probe_rig *rig, enum pyp_rec_type type)
{
	size_t n = 0;

	for (size_t i = 0; i < rig->n; i++)
		n += rig->events[i].type == type;
	return n;
}

const struct event *probe_rig_find(const struct probe_rig *rig, enum pyp_rec_type type, size_t i)
{
	for (size_t k = 0; k < rig->n; k++)
		if (rig->events[k].type == type && i-- == 0)
			return &rig->events[k];
	cr_assert_fail("no such event of type %d", (int)type);
	return NULL;
}

void probe_rig_check_no_loss(const struct probe_rig *rig)
{
	static const char *const names[] = {
#define PYP_X(name, text) #name,
		PYP_LOSSES(PYP_X)
#undef PYP_X
	};
	uint64_t losses[PYP_LOSS_MAX];

	probe_losses(rig->probe, losses);
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		cr_assert_eq(losses[i], 0, "%s is %lu", names[i], (unsigned long)losses[i]);
}
