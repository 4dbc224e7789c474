// SPDX-License-Identifier: BSD-2-Clause
/* The recorders of slow calls of a set of targets: see session.h. */
#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "session/set.h"

static int slow_begin(struct tracee *t, void *of, struct diag *diag)
{
	return tracee_slow_begin(t, of, diag);
}

static void slow_end(struct tracee *t, const void *of)
{
	if (t->slow == of)
		tracee_slow_end(t);
}

static void slow_drop(void *of)
{
	slow_free(of);
}

const struct recorder_kind slows_kind = {
	.max = 4,
	.forgotten_ns = 60 * CLOCK_NS_PER_S,
	.impossible = "its calls are not seen one by one",
	.begin = slow_begin,
	.end = slow_end,
	.free = slow_drop,
};

/* Returns the recorder, or NULL with the error. */
static struct recorder *find(struct sessions *ss, uint32_t id, struct diag *diag)
{
	struct recorder *r = recorders_find(&ss->slows, id);

	if (!r)
		diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "it has ended or does not exist",
			 "no slow calls are being recorded with number %" PRIu32, id);
	return r;
}

int sessions_slow_begin(struct sessions *ss, pid_t pid, const struct slow_opts *opts,
			uint32_t *ret_id, struct diag *diag)
{
	struct recorder *at = recorders_prepare(ss, &ss->slows);
	struct slow_opts o = *opts;
	struct slow *slow;
	int r;

	if (!at)
		return diag_set(diag, -EBUSY, PYP_EXIT_BUSY, "wait for the end of one",
				"slow calls are already being recorded %u times", slows_kind.max);
	o.from_ns = clock_monotonic_ns();
	o.from_unix_ns = clock_unix_ns();
	r = slow_new(&o, &slow, diag);
	if (r < 0)
		return r;
	r = recorders_begin(ss, &ss->slows, at, slow, pid, diag);
	if (r < 0)
		return r;
	*ret_id = at->id;
	return 0;
}

int sessions_slow_read(struct sessions *ss, uint32_t id, enum slow_detail detail, json_t **ret,
		       struct diag *diag)
{
	struct recorder *r = find(ss, id, diag);

	if (!r)
		return -ESRCH;
	r->read_ns = clock_monotonic_ns();
	*ret = slow_json(r->of, r->read_ns, detail);
	if (!*ret || json_object_set_new(*ret, "id", json_integer(id)) < 0)
		return diag_errno(diag, ENOMEM, "cannot report slow calls");
	return 0;
}

int sessions_slow_end(struct sessions *ss, uint32_t id, struct diag *diag)
{
	struct recorder *r = find(ss, id, diag);

	if (!r)
		return -ESRCH;
	recorders_close(ss, &ss->slows, r);
	return 0;
}
