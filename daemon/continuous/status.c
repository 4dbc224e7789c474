// SPDX-License-Identifier: BSD-2-Clause
/* The state of continuous mode as JSON: see continuous.h. */
#include "base/utf8_clean.h"
#include "continuous/continuous_priv.h"

static json_t *integer(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static json_t *text(const char *v)
{
	char clean[320];

	return json_string(utf8_clean(v, clean, sizeof(clean)));
}

static json_t *processes(const struct continuous *c)
{
	const struct continuous_counts *n = &c->counts;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "sampled",
			 integer(c->n - c->attaching), "attaching", integer(c->attaching),
			 "waiting", integer(c->candidates.n), "attached", integer(n->attached),
			 "refused", integer(n->refused), "last_refusal", text(n->refusal),
			 "short_lived", integer(c->candidates.short_lived), "left_out",
			 integer(n->left_out), "over_limit",
			 integer(n->over_limit + c->candidates.overflow), "lost_reports",
			 integer(arrivals_lost(c->arrivals)));
}

static json_t *memory(const struct continuous *c)
{
	const struct keep_counts k = keep_counts(c->keep);

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "intervals", integer(k.n), "bytes",
			 integer(k.bytes), "max_bytes", integer(k.max_bytes), "expired",
			 integer(k.expired), "dropped", integer(k.dropped), "oldest_unix_ns",
			 integer(k.oldest_unix_ns));
}

static json_t *disk(const struct continuous *c, const struct writer_counts *w)
{
	if (!c->opts.dir)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "directory",
			 text(c->opts.dir), "files", integer(w->disk.files), "bytes",
			 integer(w->disk.bytes), "max_bytes", integer(w->disk.max_bytes), "removed",
			 integer(w->disk.removed), "merged", integer(w->merger.merged),
			 "not_merged", integer(w->merger.failed), "merge_cpu_ns",
			 integer(w->merger.cpu_ns), "failed", integer(w->disk.failed), "error",
			 text(w->error));
}

json_t *continuous_status(struct continuous *c)
{
	const struct writer_counts w = writer_counts(c->writer);
	const struct budget *b = &c->budget;
	const uint32_t rate = target_opts_rate(&c->opts.target);

	return json_pack("{s:o, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "interval_ns", integer(c->opts.interval_ns), "rate_hz",
			 (double)rate / b->skip, "cpu_percent", 100 * b->used, "cpu_budget_percent",
			 100 * b->share, "rate_lowered", integer(b->lowered), "intervals",
			 integer(c->counts.intervals), "empty", integer(c->counts.empty),
			 "lost_intervals", integer(c->counts.lost + w.dropped + w.failed),
			 "left_out_cuts", integer(c->counts.late), "processes", processes(c),
			 "memory", memory(c), "disk", disk(c, &w));
}
