// SPDX-License-Identifier: BSD-2-Clause
/* Samples before a trace: see reference.h. */
#include "session/reference.h"

#include <errno.h>
#include <stdlib.h>

#include "event/decode.h"

/* Samples per second. Each takes the process 10 to 20 us, i.e. a few percent for a moment. */
#define RATE	   3989
#define RING_BYTES (UINT64_C(2) << 20)

struct reference {
	struct probe *probe;
	struct profile *profile; /* during reference_take only */
	uint64_t samples;
	bool on; /* it was started */
};

void reference_free(struct reference *r)
{
	if (!r)
		return;
	probe_free(r->probe);
	free(r);
}

int reference_begin(const struct target *t, const struct python *py, struct reference **ret)
{
	_cleanup_(reference_freep) struct reference *r = calloc(1, sizeof(*r));
	const struct probe_opts po = {
		.pid = t->pid,
		.tid = t->tid,
		.via = py->via,
		.bias = py->bias,
		.ring_bytes = RING_BYTES,
		.layout = &py->layout,
		.mode = MODE_SAMPLE,
		.sampling = {.rate = RATE,
			     .momentary = true,
			     .when = PYP_SAMPLING_ALONE,
			     .top = true,
			     .interp_head = python_interp_head(py),
			     .code_type = python_code_type(py)},
	};
	int err;

	if (!r)
		return -ENOMEM;
	if (!po.sampling.interp_head || !po.sampling.code_type)
		return -EOPNOTSUPP;
	err = probe_open_begin(&po, &r->probe, NULL);
	if (err == 0)
		*ret = TAKE_PTR(r);
	return err;
}

bool reference_is_ready(const struct reference *r)
{
	return probe_is_ready(r->probe);
}

int reference_start(struct reference *r)
{
	uint64_t ts;
	int err = probe_opened(r->probe, NULL);

	if (err == 0)
		err = probe_attach(r->probe, &ts, NULL);
	r->on = err == 0;
	return err;
}

static void on_record(void *ctx, const void *data, size_t size)
{
	struct reference *r = ctx;
	struct event e;

	if (decode_event(data, size, &e) != DECODE_OK)
		return;
	r->samples += e.type == PYP_REC_SAMPLE && e.u.sample.flags & PYP_SAMPLE_LAST;
	profile_sample_before(r->profile, &e);
}

void reference_turn(struct reference *r, uint64_t now_ns)
{
	probe_jitter(r->probe, now_ns);
}

/* Its timers would slow down what is measured afterwards: 3,989 Hz took some 10 % of the CPU time. */
void reference_end(struct reference *r)
{
	if (r->on)
		probe_detach(r->probe);
}

uint64_t reference_take(struct reference *r, struct profile *p)
{
	if (!r->on)
		return 0;
	r->profile = p;
	reference_end(r);
	(void)probe_drain(r->probe, 0, on_record, r);
	return r->samples;
}
