// SPDX-License-Identifier: BSD-2-Clause
/* The provenance in a few lines: see brief.h. */
#include "format/brief.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/overhead.h"

#define NS	     1e9
#define TARGETS_MAX  6 /* pids that are listed */
#define COMMANDS_MAX 32
#define WARNINGS_MAX 3 /* different warnings that are printed */

/* Sums over the selected targets. */
struct brief {
	const struct snapshot *s;
	const struct format_opts *o;
	uint32_t n; /* targets */
	unsigned int modes;
	bool exact, windows, corrected, cost_unknown, walked;
	uint64_t events, lost, observed_ns, end_unix_ns;
	uint64_t samples, walks, seen_cpu_ns, all_cpu_ns, nwindows;
	uint64_t not_traced, failed_windows, overhead_ns, own_cpu_ns;
	uint32_t limit; /* the highest of all, percent; 0: none */
	const struct snapshot_target *first;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void add_target(struct brief *b, const struct snapshot_target *t)
{
	const struct snapshot_children *c = &t->children;

	if (!b->n++)
		b->first = t;
	b->modes |= snapshot_target_modes(t);
	b->exact &= provenance_exact(b->s, t);
	b->windows |= t->windows.sampled;
	/* Samples within probes are left out. */
	b->corrected &= t->mode != MODE_TRACE || t->corrected || t->windows.sampled;
	b->cost_unknown |= t->mode == MODE_TRACE && !t->cost.known;
	b->events += t->events;
	b->lost += provenance_lost(t);
	/* Samples show the time between windows. */
	b->observed_ns = larger(b->observed_ns, larger(t->traced_ns, t->windows.span_ns));
	b->limit = (uint32_t)larger(b->limit, t->windows.max_overhead);
	b->end_unix_ns = larger(b->end_unix_ns, t->end_unix_ns);
	b->samples += t->estimate.samples;
	b->walked |= t->waits.walked;
	b->walks += t->waits.walks;
	b->nwindows += t->windows.n;
	b->seen_cpu_ns += t->windows.seen_cpu_ns;
	b->all_cpu_ns += t->windows.all_cpu_ns;
	b->failed_windows += t->windows.failed;
	b->overhead_ns += t->overhead_ns;
	b->own_cpu_ns += t->own_cpu_ns;
	b->not_traced += c->over_limit + c->ended_first + c->failed;
}

static const char *known(const char *s)
{
	return s && *s ? s : "unknown";
}

/* ---- the targets ---- */

static bool same_command(const struct brief *b)
{
	for (uint32_t i = 0; i < b->s->ntargets; i++)
		if (provenance_selects(b->s, &b->o->filter, &b->s->targets[i]) &&
		    strcmp(known(b->s->targets[i].cmdline), known(b->first->cmdline)) != 0)
			return false;
	return true;
}

static void put_one(const struct snapshot_target *t, bool command, FILE *out)
{
	if (t->folded)
		fprintf(out, "%" PRIu32 " ended%s", t->folded, command ? " " : "");
	else if (t->pid) /* 0: stands for many, which its command names */
		fprintf(out, "%" PRIu32 "%s", t->pid, command ? " " : "");
	if (command)
		fputs(known(t->cmdline), out);
}

static void put_targets(const struct brief *b, FILE *out)
{
	bool same = same_command(b);
	uint32_t n = 0;

	if (b->n > 1)
		fprintf(out, "%" PRIu32 " processes: ", b->n);
	if (same && b->n > 1)
		fprintf(out, "%s: ", known(b->first->cmdline));
	for (uint32_t i = 0; i < b->s->ntargets && n < TARGETS_MAX; i++) {
		if (!provenance_selects(b->s, &b->o->filter, &b->s->targets[i]))
			continue;
		fputs(n++ ? "; " : "", out);
		put_one(&b->s->targets[i], !same || b->n == 1, out);
	}
	if (b->n > n)
		fputs("; ...", out);
}

static void put_thread(const struct brief *b, FILE *out)
{
	for (uint32_t i = 0; b->o->filter.tid && i < b->s->nthreads; i++)
		if (view_selects(&b->o->filter, &b->s->threads[i])) {
			fprintf(out, ", only thread %" PRIu32 " (%s)", b->s->threads[i].tid,
				known(b->s->threads[i].name));
			return;
		}
}

static void put_process(const struct brief *b, FILE *out)
{
	put_targets(b, out);
	put_thread(b, out);
	fprintf(out, " (Python %s, %s)", known(b->first->python_version), known(b->s->host));
}

/* ---- the time ---- */

static void put_time(const struct brief *b, FILE *out)
{
	time_t seconds = (time_t)(b->end_unix_ns / (uint64_t)NS);
	char until[40] = "";
	struct tm tm;

	if (b->end_unix_ns && gmtime_r(&seconds, &tm))
		strftime(until, sizeof(until), " until %Y-%m-%d %H:%M:%S UTC", &tm);
	fprintf(out, "%.3f seconds%s%s", (double)b->observed_ns / NS,
		b->first->since ? " since the last snapshot" : "", until);
	if (b->modes != 1u << MODE_COUNT)
		fprintf(out, "; %s",
			b->o->clock == SNAPSHOT_WALL ? "wall time, waiting included" : "CPU time");
	if (b->s->busy)
		fputs("; waits for work are left out", out);
	if (b->s->folded)
		fputs("; libraries are folded into their callers", out);
	if (b->s->builtins_of)
		fprintf(out, "; C functions other than '%s' are folded into their callers",
			b->s->builtins_of);
}

/* ---- the mode and the figures' quality ---- */

static void put_mode(const struct brief *b, FILE *out)
{
	const char *sep = "mode ";

	for (int m = 0; m <= MODE_SAMPLE; m++) {
		if (!(b->modes & 1u << m))
			continue;
		fprintf(out, "%s%s", sep, mode_names[m]);
		sep = " and ";
	}
	if (b->limit)
		fprintf(out, ", at most about %" PRIu32 " %% overhead", b->limit);
}

static void put_times(const struct brief *b, FILE *out)
{
	if (b->modes == 1u << MODE_COUNT) {
		fputs(b->walked ? "; no CPU times" : "; no times", out);
		return;
	}
	if (b->modes & 1u << MODE_SAMPLE || (b->windows && b->corrected))
		fprintf(out, "; CPU times from %" PRIu64 " samples, error %.1f%% of the sum",
			b->samples, 100 * provenance_sampling_error(b->samples));
	else if (!b->corrected)
		fputs("; times include the probes' own", out);
	else if (b->samples)
		fprintf(out, "; CPU times estimated by %" PRIu64 " samples", b->samples);
	else
		fputs("; the probes' own time is subtracted", out);
}

static void put_quality(const struct brief *b, FILE *out)
{
	bool sampled = b->modes == 1u << MODE_SAMPLE;

	if (sampled && b->lost)
		fprintf(out, ": %" PRIu64 " samples also lost", b->lost);
	else if (b->lost)
		fprintf(out, ": %" PRIu64 " of %" PRIu64 " events lost, counts are lower bounds",
			b->lost, b->events + b->lost);
	else if (sampled)
		fprintf(out, " at %" PRIu32 " Hz: no counts%s", b->first->estimate.rate,
			b->walked ? "" : ", no waiting");
	else if (b->windows && !b->nwindows)
		fputs(": counts unknown, as there was no window", out);
	else if (b->windows)
		fprintf(out, ": counts estimated from %" PRIu64 " window%s, %.1f%% of CPU time",
			b->nwindows, b->nwindows == 1 ? "" : "s",
			b->all_cpu_ns ? 100 * (double)b->seen_cpu_ns / (double)b->all_cpu_ns : 100);
	else if (!b->exact)
		fputs(": INCOMPLETE, counts are lower bounds (--verbose: why)", out);
	else if (b->events)
		fprintf(out, ": exact counts: %" PRIu64 " calls%s, none lost", b->events,
			b->modes & 1u << MODE_TRACE ? " and returns" : "");
	else
		fputs(": no calls recorded", out);
	if (b->events || b->samples)
		put_times(b, out);
	/* A trace needs none as long as it shows every call. */
	if (b->walked && (b->walks || b->modes != 1u << MODE_TRACE))
		fprintf(out, "; waiting by function from %" PRIu64 " stacks", b->walks);
}

static void put_result(const struct brief *b, FILE *out)
{
	put_mode(b, out);
	put_quality(b, out);
}

static void put_overhead(const struct brief *b, FILE *out)
{
	char text[OVERHEAD_TEXT];

	overhead_text(b->overhead_ns, b->own_cpu_ns, b->n > 1 || b->first->folded > 1, text);
	fputs(text, out);
}

static const char *result_label(const struct brief *b)
{
	if (b->lost)
		return "LOST";
	if (b->windows || b->modes == 1u << MODE_SAMPLE)
		return "ESTIMATE";
	return b->exact ? "result" : "INCOMPLETE";
}

/* ---- warnings ---- */

/* The target that forked this one, or its parent and so on, if that is selected; else itself. */
static const struct snapshot_target *founder(const struct brief *b, const struct snapshot_target *t)
{
	for (uint32_t i = 0, steps = 0; i < b->s->ntargets && steps <= b->s->ntargets; i++) {
		const struct snapshot_target *p = &b->s->targets[i];

		if (!t->parent || p == t || p->pid != t->parent ||
		    !provenance_selects(b->s, &b->o->filter, p))
			continue;
		t = p;
		steps++;
		i = UINT32_MAX; /* from the start again */
	}
	return t;
}

/* Counts different commands. Forked processes belong to the command of their founder. */
static uint32_t count_commands(const struct brief *b)
{
	const char *seen[COMMANDS_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->s->ntargets && n < COMMANDS_MAX; i++) {
		const struct snapshot_target *t = &b->s->targets[i];
		const char *command;
		uint32_t k = 0;

		if (t->folded || !provenance_selects(b->s, &b->o->filter, t))
			continue;
		command = known(founder(b, t)->cmdline);
		while (k < n && strcmp(seen[k], command) != 0)
			k++;
		if (k == n)
			seen[n++] = command;
	}
	return n;
}

static void put_unrelated(const struct brief *b, const char **sep, FILE *out)
{
	uint32_t n = b->n > 1 ? count_commands(b) : 1;

	if (n < 2)
		return;
	fprintf(out,
		"%sprocesses of %" PRIu32 "%s different commands are added up (--pid selects one)",
		*sep, n, n == COMMANDS_MAX ? " or more" : "");
	*sep = "; ";
}

static bool is_new(const struct brief *b, uint32_t until, const char *warning)
{
	for (uint32_t i = 0; i < until; i++)
		if (provenance_selects(b->s, &b->o->filter, &b->s->targets[i]) &&
		    b->s->targets[i].warnings && strcmp(b->s->targets[i].warnings, warning) == 0)
			return false;
	return true;
}

static void put_sum(uint64_t n, const char *text, const char **sep, FILE *out)
{
	if (!n)
		return;
	fprintf(out, "%s%" PRIu64 " %s", *sep, n, text);
	*sep = "; ";
}

static void put_warnings(const struct brief *b, FILE *out)
{
	const char *sep = "";
	uint32_t more = 0, n = 0;

	put_unrelated(b, &sep, out);
	for (uint32_t i = 0; i < b->s->ntargets; i++) {
		const char *w = b->s->targets[i].warnings;

		if (!provenance_selects(b->s, &b->o->filter, &b->s->targets[i]) || !w || !*w ||
		    !is_new(b, i, w))
			continue;
		if (n++ >= WARNINGS_MAX) {
			more++;
			continue;
		}
		fprintf(out, "%s%s", sep, w);
		sep = "; ";
	}
	put_sum(b->not_traced, "children were not traced", &sep, out);
	put_sum(b->failed_windows, "windows failed to open", &sep, out);
	if (b->cost_unknown) {
		fprintf(out, "%sthe probes' cost could not be measured", sep);
		sep = "; ";
	}
	put_sum(more, "more (--verbose)", &sep, out);
}

/* ---- lines ---- */

typedef void (*put_fn)(const struct brief *b, FILE *out);

static int put_line(const struct brief *b, const char *label, put_fn put, provenance_line_fn line,
		    void *ctx)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	put(b, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	if (*text)
		line(ctx, label, text);
	return 0;
}

int brief_lines(const struct snapshot *s, const struct format_opts *o, provenance_line_fn line,
		void *ctx)
{
	struct brief b = {.s = s, .o = o, .exact = true, .corrected = true};
	int err;

	for (uint32_t i = 0; i < s->ntargets; i++)
		if (provenance_selects(s, &o->filter, &s->targets[i]))
			add_target(&b, &s->targets[i]);
	if (!b.n)
		return 0;
	err = put_line(&b, "process", put_process, line, ctx);
	if (!err)
		err = put_line(&b, "recorded", put_time, line, ctx);
	if (!err)
		err = put_line(&b, result_label(&b), put_result, line, ctx);
	if (!err)
		err = put_line(&b, "overhead", put_overhead, line, ctx);
	if (!err)
		err = put_line(&b, "WARNING", put_warnings, line, ctx);
	return err;
}
