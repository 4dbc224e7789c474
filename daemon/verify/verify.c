// SPDX-License-Identifier: BSD-2-Clause
/* The self-test: see verify.h. */
#include "verify/verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "event/decode.h"
#include "probe/probe.h"
#include "profile/profile.h"
#include "verify/cache.h"
#include "verify/scratch.h"
#include "verify/script.h"
#include "verify/transcript.h"

#define RING_BYTES (4u << 20)

/* One run: the scratch process, and the data traced from it */
struct run {
	struct scratch scratch;
	struct probe *probe;
	struct profile *profile;
	struct transcript *transcript;
	uint64_t broken; /* records that could not be decoded */
	uint64_t without_ns, with_ns;
	bool gc;				  /* collections are compared as well */
	uint64_t collections[PYP_GC_GENERATIONS]; /* as the process counts them */
};

static void run_deinit(struct run *r)
{
	probe_free(r->probe);
	profile_free(r->profile);
	transcript_free(r->transcript);
	scratch_end(&r->scratch);
}

__attribute__((format(printf, 3, 4))) static int
verdict(struct verify_result *ret, enum verify_verdict v, const char *fmt, ...)
{
	va_list ap;

	ret->verdict = v;
	va_start(ap, fmt);
	vsnprintf(ret->reason, sizeof(ret->reason), fmt, ap);
	va_end(ap);
	return -1;
}

static int not_run(struct verify_result *ret, const struct diag *diag)
{
	return verdict(ret, VERIFY_NOT_RUN, "%s", diag->msg);
}

/* ---- tracing ----------------------------------------------------------------------------- */

static int resolve(void *ctx, uint64_t code, uint64_t announced_ns, struct code_names *ret)
{
	struct run *run = ctx;

	(void)announced_ns;
	return inspect_code(run->scratch.inspect, code, ret);
}

/* Get a name that the BPF program could not read. */
static int code_name(void *ctx, uint64_t code, char *out, size_t size)
{
	struct run *run = ctx;
	struct code_names c = {0};
	int r = inspect_code(run->scratch.inspect, code, &c);

	if (r < 0)
		return r;
	snprintf(out, size, "%s", c.name);
	code_names_deinit(&c);
	return 0;
}

static void on_record(void *ctx, const void *data, size_t size)
{
	struct run *run = ctx;
	struct event e;

	if (decode_event(data, size, &e) != DECODE_OK)
		run->broken++;
	else if (e.type != PYP_REC_FORK && e.type != PYP_REC_EXEC) {
		/* Collections that were wrong must make nothing else so. */
		if (e.type != PYP_REC_GC_START && e.type != PYP_REC_GC_STOP)
			profile_event(run->profile, &e);
		transcript_event(run->transcript, &e);
	}
}

static int expect(struct run *run, const char *word, struct verify_result *ret)
{
	char line[128];
	int r = scratch_line(&run->scratch, line, sizeof(line));

	if (r == -ETIMEDOUT)
		return verdict(ret, VERIFY_NOT_RUN, "the scratch process timed out");
	if (r < 0 || strncmp(line, word, strlen(word)) != 0)
		return verdict(ret, VERIFY_NOT_RUN, "the scratch process does not run");
	if (strcmp(word, "done") == 0) {
		char *p = line + strlen(word);

		for (unsigned int g = 0; g < PYP_GC_GENERATIONS; g++)
			run->collections[g] = strtoull(p, &p, 10);
	}
	if (strcmp(word, "cost") == 0) {
		char *p = line + strlen(word);

		run->without_ns = strtoull(p, &p, 10);
		run->with_ns = strtoull(p, &p, 10);
	}
	return 0;
}

static int start(struct run *run, const struct verify_opts *o, struct verify_result *ret)
{
	const struct scratch_opts so = {
		.target = o->target,
		.path = o->python->file,
		.script = o->builtins ? script_builtins_text : script_text,
	};
	struct diag diag = {0};
	int r;

	r = scratch_start(&so, &run->scratch, &diag);
	ret->grouped = run->scratch.group.memory && run->scratch.group.pids;
	if (r < 0)
		return not_run(ret, &diag);
	r = expect(run, "ready", ret);
	if (r < 0)
		return r;
	r = scratch_discover(&run->scratch, o->python, &diag);
	if (r < 0)
		return not_run(ret, &diag);
	return 0;
}

static int attach(struct run *run, const struct verify_opts *o, struct verify_result *ret)
{
	const struct transcript_opts to = {
		.layout = &run->scratch.python->layout,
		.plan = o->plan,
		.parts = {o->builtins ? script_builtins : NULL},
		.name = code_name,
		.ctx = run,
	};
	struct diag diag = {0};
	uint64_t ts = 0;
	int r;

	run->gc = o->plan->ngc && !o->builtins;
	r = scratch_probe(&run->scratch, o->plan, o->builtins, RING_BYTES, &run->probe, &diag);
	run->profile = profile_new(NULL, resolve, run);
	run->transcript = transcript_new(&to);
	if (r == 0 && (!run->profile || !run->transcript))
		r = diag_errno(&diag, ENOMEM, "cannot trace the scratch process");
	if (r == 0)
		r = probe_attach(run->probe, &ts, &diag);
	if (r < 0)
		return not_run(ret, &diag);
	profile_begin(run->profile, ts);
	return 0;
}

/* ---- judging ----------------------------------------------------------------------------- */

struct seen {
	uint64_t calls, primitive;
};

static const char *name_of(const struct snapshot *s, uint32_t func)
{
	return func == SNAPSHOT_NONE ? "" : s->funcs[func].name;
}

static bool recursive(const struct snapshot *s, uint32_t node)
{
	for (uint32_t i = s->nodes[node].parent; i != SNAPSHOT_NONE; i = s->nodes[i].parent)
		if (s->nodes[i].func == s->nodes[node].func)
			return true;
	return false;
}

static struct seen seen_of(const struct snapshot *s, const char *name)
{
	struct seen ret = {0};

	for (uint32_t i = 0; i < s->nnodes; i++) {
		if (strcmp(name_of(s, s->nodes[i].func), name) != 0)
			continue;
		ret.calls += s->nodes[i].calls;
		if (!recursive(s, i))
			ret.primitive += s->nodes[i].calls;
	}
	return ret;
}

/* Compare the counts from the rebuilt stacks with those from the events. */
static int check_functions(const struct run *run, const struct snapshot *s,
			   struct verify_result *ret)
{
	const struct transcript_calls *c;
	size_t n = transcript_calls(run->transcript, &c);

	for (size_t i = 0; i < n; i++) {
		const struct seen seen = seen_of(s, c[i].name);

		if (seen.calls != c[i].calls || seen.primitive != c[i].primitive)
			return verdict(
				ret, VERIFY_WRONG,
				"%s was called %llu/%llu times, but %llu/%llu calls were counted",
				c[i].name, (unsigned long long)c[i].calls,
				(unsigned long long)c[i].primitive, (unsigned long long)seen.calls,
				(unsigned long long)seen.primitive);
		ret->functions += c[i].calls > 0;
		ret->calls += (uint32_t)c[i].calls;
	}
	return 0;
}

static int check(const struct run *run, const struct snapshot *s, struct verify_result *ret)
{
	uint64_t losses[PYP_LOSS_MAX];
	char why[sizeof(ret->reason)];

	probe_losses(run->probe, losses);
	if (!transcript_right(run->transcript, why, sizeof(why)))
		return verdict(ret, VERIFY_WRONG, "%s", why);
	if (run->broken || losses[PYP_LOSS_fault_frame])
		return verdict(ret, VERIFY_WRONG, "frames could not be read");
	if (losses[PYP_LOSS_lost_events] || losses[PYP_LOSS_lost_chains])
		return verdict(ret, VERIFY_NOT_RUN, "events of the scratch process were lost");
	if (run->gc &&
	    !transcript_collections_right(run->transcript, run->collections, why, sizeof(why)))
		memcpy(ret->gc_wrong, why, sizeof(why));
	if (s->targets[0].unmatched)
		return verdict(ret, VERIFY_WRONG, "%llu events did not match any stack",
			       (unsigned long long)s->targets[0].unmatched);
	ret->events = (uint32_t)transcript_events(run->transcript);
	ret->site_mask = transcript_sites(run->transcript, 0);
	ret->more_sites[0] = transcript_sites(run->transcript, 1);
	ret->more_sites[1] = transcript_sites(run->transcript, 2);
	ret->sites = (uint32_t)(__builtin_popcountll(ret->site_mask) +
				__builtin_popcountll(ret->more_sites[0]) +
				__builtin_popcountll(ret->more_sites[1]));
	return check_functions(run, s, ret);
}

/* The process printed "done" after its last event, so the ring has all of them. */
static int compare(struct run *run, struct verify_result *ret)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_new();
	int r = s ? 0 : -ENOMEM;

	probe_drain(run->probe, 0, on_record, run);
	if (r == 0) {
		s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
		s->ntargets = 1;
		r = s->targets ? profile_snapshot(run->profile, UINT64_MAX / 2, 1, s, s->targets)
			       : -ENOMEM;
	}
	return r < 0 ? verdict(ret, VERIFY_NOT_RUN, "out of memory") : check(run, s, ret);
}

static void measure(const struct run *run, struct verify_result *ret)
{
	if (run->with_ns > run->without_ns)
		ret->event_ns =
			(uint32_t)((run->with_ns - run->without_ns) / (2 * SCRIPT_COST_CALLS));
}

static void run_scratch(const struct verify_opts *o, struct verify_result *ret)
{
	_cleanup_(run_deinit) struct run run = {
		.scratch = {.in = -1, .out = -1, .leash = -1, .pidfd = -1}};

	if (start(&run, o, ret) < 0 || attach(&run, o, ret) < 0)
		return;
	if (scratch_go(&run.scratch) < 0 || expect(&run, "done", ret) < 0 || compare(&run, ret) < 0)
		return;
	if (scratch_go(&run.scratch) < 0 || expect(&run, "cost", ret) < 0)
		return;
	measure(&run, ret);
	ret->verdict = VERIFY_RIGHT;
}

void verify_run(const struct verify_opts *opts, struct verify_result *ret)
{
	*ret = (struct verify_result){0};
	if (!opts->fresh && !opts->builtins && cache_load(opts, ret) == 0)
		return;
	run_scratch(opts, ret);
	if (!opts->builtins && !ret->gc_wrong[0])
		cache_store(opts, ret);
}
