// SPDX-License-Identifier: BSD-2-Clause
/* What /metrics has: see metrics.h. */
#include "server/metrics.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/wait.h"
#include "pyprof/version.h"
#include "server/pushes.h"

struct writer {
	const struct metrics *m;
	struct exposition *e;
};

#define LABELS(...) (&(const struct exposition_labels){__VA_ARGS__})
#define LABEL(name, value)                                                                         \
	{                                                                                          \
		(name), (value)                                                                    \
	}

static const char *const clocks[SNAPSHOT_CLOCKS] = {
	[SNAPSHOT_CPU] = "cpu", [SNAPSHOT_WALL] = "wall"};

/* A process id as the value of a label */
struct pid_text {
	char text[16];
};

static struct pid_text pid_text(uint32_t pid)
{
	struct pid_text ret;

	snprintf(ret.text, sizeof(ret.text), "%u", pid);
	return ret;
}

static void begin(struct writer *w, enum exposition_type type, const char *name, const char *unit,
		  const char *help)
{
	exposition_begin(w->e, &(struct exposition_family){name, help, unit, type});
}

/* ---- one figure per target ---- */

struct family {
	const char *name, *help;
	enum exposition_type type;
	enum { NUMBER, SECONDS } unit;
	size_t offset; /* of a uint64_t or uint32_t in struct session_status */
	bool wide;     /* uint64_t */
};

#define FIELD64(f) .offset = offsetof(struct session_status, f), .wide = true
#define FIELD32(f) .offset = offsetof(struct session_status, f)

static const struct family families[] = {
	{"pyprofd_events", "Traced calls and returns.", EXPOSITION_COUNTER, NUMBER,
	 FIELD64(events)},
	{"pyprofd_lost_events", "Calls and returns lost.", EXPOSITION_COUNTER, NUMBER,
	 FIELD64(lost)},
	{"pyprofd_unmatched_events", "Events that did not match any stack.", EXPOSITION_COUNTER,
	 NUMBER, FIELD64(unmatched)},
	{"pyprofd_unstarted_frames", "Frames unwound before they started.", EXPOSITION_COUNTER,
	 NUMBER, FIELD64(unstarted)},
	{"pyprofd_traced_seconds", "Time with probes attached.", EXPOSITION_COUNTER, SECONDS,
	 FIELD64(traced_ns)},
	{"pyprofd_threads", "Traced threads.", EXPOSITION_GAUGE, NUMBER, FIELD64(threads)},
	{"pyprofd_functions", "Traced functions.", EXPOSITION_GAUGE, NUMBER, FIELD32(funcs)},
	{"pyprofd_contexts", "Nodes of the calling-context tree.", EXPOSITION_GAUGE, NUMBER,
	 FIELD32(nodes)},
	{"pyprofd_process_cpu_seconds", "CPU time of the process, probes included.",
	 EXPOSITION_COUNTER, SECONDS, FIELD64(cpu_ns)},
	{"pyprofd_overhead_seconds", "What observing took from the process.", EXPOSITION_COUNTER,
	 SECONDS, FIELD64(overhead_ns)},
	{"pyprofd_own_cpu_seconds", "CPU time of the process while observed, without that.",
	 EXPOSITION_COUNTER, SECONDS, FIELD64(own_cpu_ns)},
	{"pyprofd_process_resident_memory_bytes", "Resident memory of the process.",
	 EXPOSITION_GAUGE, NUMBER, FIELD64(rss)},
};

static uint64_t family_value(const struct family *f, const struct session_status *st)
{
	const char *p = (const char *)st + f->offset;

	return f->wide ? *(const uint64_t *)p : *(const uint32_t *)p;
}

static void write_family(struct writer *w, const struct family *f)
{
	begin(w, f->type, f->name, f->unit == SECONDS ? "seconds" : NULL, f->help);
	for (size_t i = 0; i < w->m->n; i++) {
		const struct session_status *st = &w->m->st[i];
		const struct pid_text pid = pid_text((uint32_t)st->pid);
		const struct exposition_labels *labels = LABELS({LABEL("pid", pid.text)}, 1);

		if (f->unit == SECONDS)
			exposition_seconds(w->e, labels, family_value(f, st));
		else
			exposition_count(w->e, labels, family_value(f, st));
	}
}

static void write_states(struct writer *w)
{
	begin(w, EXPOSITION_GAUGE, "pyprofd_targets", NULL, "Targets by state.");
	for (int state = SESSION_ATTACHED; state <= SESSION_ENDED; state++) {
		size_t count = 0;

		for (size_t i = 0; i < w->m->n; i++)
			count += (int)w->m->st[i].state == state;
		exposition_count(
			w->e,
			LABELS({LABEL("state", session_state_name((enum session_state)state))}, 1),
			count);
	}
}

static void write_overhead(struct writer *w)
{
	begin(w, EXPOSITION_GAUGE, "pyprofd_overhead_ratio", "ratio",
	      "What observing took in the last seconds divided by the process's own CPU time.");
	for (size_t i = 0; i < w->m->n; i++) {
		const struct pid_text pid = pid_text((uint32_t)w->m->st[i].pid);

		exposition_ratio(w->e, LABELS({LABEL("pid", pid.text)}, 1), w->m->st[i].overhead);
	}
}

static void write_info(struct writer *w)
{
	begin(w, EXPOSITION_INFO, "pyprofd_target", NULL, "State, version and command line.");
	for (size_t i = 0; i < w->m->n; i++) {
		const struct session_status *st = &w->m->st[i];
		const struct pid_text pid = pid_text((uint32_t)st->pid);

		exposition_info(w->e, LABELS({LABEL("pid", pid.text),
					      LABEL("state", session_state_name(st->state)),
					      LABEL("python", st->python_version),
					      LABEL("cmdline", st->cmdline)},
					     4));
	}
}

static void write_drops(struct writer *w)
{
	static const char *const names[PYP_LOSS_MAX] = {
#define PYP_X(name, text) [PYP_LOSS_##name] = #name,
		PYP_LOSSES(PYP_X)
#undef PYP_X
	};

	begin(w, EXPOSITION_COUNTER, "pyprofd_bpf_drops", NULL,
	      "Events and records dropped by the BPF programs.");
	for (size_t i = 0; i < w->m->n; i++) {
		const struct pid_text pid = pid_text((uint32_t)w->m->st[i].pid);

		for (size_t c = 0; c < PYP_LOSS_MAX; c++)
			exposition_count(w->e,
					 LABELS({LABEL("pid", pid.text), LABEL("reason", names[c])},
						2),
					 w->m->st[i].losses[c]);
	}
}

/* ---- clients ---- */

static void write_reasons(struct writer *w, const char *const *reasons, const uint64_t *n,
			  size_t count)
{
	for (size_t i = 0; i < count; i++)
		exposition_count(w->e, LABELS({LABEL("reason", reasons[i])}, 1), n[i]);
}

static void write_clients(struct writer *w)
{
	const struct dropped_clients *d = &w->m->dropped;
	const struct refused_requests *r = &w->m->refused;

	begin(w, EXPOSITION_COUNTER, "pyprofd_dropped_clients", NULL,
	      "Connections closed: request late, response not read, too many of one user.");
	write_reasons(w, (const char *const[]){"late", "unread", "crowded"},
		      (const uint64_t[]){d->late, d->unread, d->crowded}, 3);
	begin(w, EXPOSITION_COUNTER, "pyprofd_refused_requests", NULL,
	      "Requests to the HTTP listener refused: without a valid token, of other sites.");
	write_reasons(w, (const char *const[]){"token", "site"},
		      (const uint64_t[]){r->token, r->site}, 2);
}

/* ---- sums of profiles ---- */

static void write_waits(struct writer *w)
{
	begin(w, EXPOSITION_COUNTER, "pyprofd_wait_seconds", "seconds",
	      "Time that threads waited, by reason; gil: for the GIL.");
	for (size_t i = 0; i < w->m->totals->n; i++) {
		const struct total_target *t = &w->m->totals->v[i];
		const struct pid_text pid = pid_text(t->pid);

		for (int c = 0; c < TOTALS_WAITS && t->has_waits; c++)
			exposition_seconds(
				w->e,
				LABELS({LABEL("pid", pid.text),
					LABEL("reason", column_table[COLUMN_WAITS_FIRST + c].name)},
				       2),
				t->waits[c]);
	}
}

static void write_collections(struct writer *w)
{
	begin(w, EXPOSITION_COUNTER, "pyprofd_gc_collections", NULL,
	      "Collections of the garbage collector.");
	for (size_t i = 0; i < w->m->totals->n; i++) {
		const struct total_target *t = &w->m->totals->v[i];
		const struct pid_text pid = pid_text(t->pid);

		if (t->has_gc)
			exposition_count(w->e, LABELS({LABEL("pid", pid.text)}, 1), t->collections);
	}
	begin(w, EXPOSITION_COUNTER, "pyprofd_gc_seconds", "seconds",
	      "Time in collections of the garbage collector.");
	for (size_t i = 0; i < w->m->totals->n; i++) {
		const struct total_target *t = &w->m->totals->v[i];
		const struct pid_text pid = pid_text(t->pid);

		for (int c = 0; c < SNAPSHOT_CLOCKS && t->has_gc; c++)
			exposition_seconds(
				w->e,
				LABELS({LABEL("pid", pid.text), LABEL("clock", clocks[c])}, 2),
				t->gc[c]);
	}
}

static void write_probes(struct writer *w)
{
	begin(w, EXPOSITION_COUNTER, "pyprofd_probe_seconds", "seconds",
	      "CPU time of probes, which is subtracted from that of functions.");
	for (size_t i = 0; i < w->m->totals->n; i++) {
		const struct pid_text pid = pid_text(w->m->totals->v[i].pid);

		exposition_seconds(w->e, LABELS({LABEL("pid", pid.text)}, 1),
				   w->m->totals->v[i].probes_ns);
	}
}

/* ---- functions ---- */

typedef void (*function_fn)(struct writer *w, const struct total_target *t,
			    const struct total_function *f, const char *pid, const char *name);

static void for_each(struct writer *w, function_fn fn)
{
	for (size_t i = 0; i < w->m->totals->n; i++) {
		const struct total_target *t = &w->m->totals->v[i];
		const struct pid_text pid = pid_text(t->pid);

		for (uint32_t k = 0; k < t->n; k++)
			if (t->functions[k].shown)
				fn(w, t, &t->functions[k], pid.text, strtab_get(&t->names, k));
	}
}

static void write_calls(struct writer *w, const struct total_target *t,
			const struct total_function *f, const char *pid, const char *name)
{
	if (t->has_calls)
		exposition_count(w->e, LABELS({LABEL("pid", pid), LABEL("function", name)}, 2),
				 f->calls);
}

static void write_self(struct writer *w, const struct total_target *t,
		       const struct total_function *f, const char *pid, const char *name)
{
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		if (t->has_self[c])
			exposition_seconds(w->e,
					   LABELS({LABEL("pid", pid), LABEL("function", name),
						   LABEL("clock", clocks[c])},
						  3),
					   f->self[c]);
}

static void write_durations(struct writer *w, const struct total_target *t,
			    const struct total_function *f, const char *pid, const char *name)
{
	(void)t;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		struct histogram_sum sum = {0};

		if (!f->durations[c].len)
			continue;
		histogram_add(&sum, &f->durations[c]);
		exposition_histogram(w->e,
				     LABELS({LABEL("pid", pid), LABEL("function", name),
					     LABEL("clock", clocks[c])},
					    3),
				     &sum);
	}
}

static void write_functions(struct writer *w)
{
	begin(w, EXPOSITION_COUNTER, "pyprofd_function_calls", NULL, "Calls of a function.");
	for_each(w, write_calls);
	begin(w, EXPOSITION_COUNTER, "pyprofd_function_self_seconds", "seconds",
	      "Time in a function itself.");
	for_each(w, write_self);
	begin(w, EXPOSITION_HISTOGRAM, "pyprofd_call_duration_seconds", "seconds",
	      "Durations of complete calls, callees included.");
	for_each(w, write_durations);
	begin(w, EXPOSITION_GAUGE, "pyprofd_skipped_targets", NULL,
	      "Targets without functions here: their profiles are too large together.");
	exposition_count(w->e, LABELS(.n = 0), w->m->totals->skipped);
}

int metrics_write(const struct metrics *m, enum exposition_form form, FILE *out)
{
	struct writer w = {m, exposition_new(out, form)};
	int err;

	if (!w.e)
		return -ENOMEM;
	begin(&w, EXPOSITION_INFO, "pyprofd_build", NULL, "Version of pyprofd.");
	exposition_info(w.e, LABELS({LABEL("version", PYPROF_VERSION)}, 1));
	write_states(&w);
	write_info(&w);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		write_family(&w, &families[i]);
	write_overhead(&w);
	write_drops(&w);
	write_waits(&w);
	write_collections(&w);
	write_probes(&w);
	write_functions(&w);
	write_clients(&w);
	pushes_write_metrics(&w.m->pushes, w.e);
	err = exposition_end(w.e);
	exposition_free(w.e);
	return err;
}
